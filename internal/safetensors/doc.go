// Package safetensors reads the safetensors file format: a JSON
// header that names each tensor, its type, shape and place, followed by the
// tensors' bytes, little-endian.
//
// The reader trusts nothing in the header: tensors must lie inside the file,
// cover it without gaps or overlaps, and be as long as their type and shape
// say. See https://github.com/huggingface/safetensors for the format.
package safetensors
