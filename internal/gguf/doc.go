// Package gguf turns a LoRA adapter as PEFT saves it (adapter_config.json and
// adapter_model.safetensors) into what Ollama and llama.cpp run: a GGUF
// adapter, or the base model with the adapter merged into its weights.
//
// A Model is a GGUF file's metadata and tensors, wherever they come from: Open
// reads a GGUF file, OpenHuggingFace a folder of safetensors with its
// tokenizer, Adapter.For an adapter, and Merge adds an adapter to a base.
// Tensors are read in rows when they are wanted, so that a model need not fit
// in memory; Model.Write writes it as 32-bit or 16-bit floats or as q8_0.
//
// The architectures are llama and granite (and the dense ones of
// granitemoehybrid, such as Granite 4 Micro, which are granite in GGUF). In
// both, the rows of the query and key projections stand in another order in
// GGUF than in Hugging Face's files: the halves of each head interleave, since
// the rotary embedding turns neighbours there. Anything else is refused by its
// name rather than converted into something that merely looks right.
//
// Formats: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md and
// https://huggingface.co/docs/peft/developer_guides/checkpoint. Names and order
// follow llama.cpp's converters.
package gguf
