// Package encoder runs BERT-shaped transformer encoders in the process: pure
// Go with assembly for the inner loops, no cgo and nothing to install.
//
// One base model (all-MiniLM-L6-v2 is embedded, see MiniLM) serves any number
// of LoRA adapters, which are applied at run time beside the base weights:
//
//	model, err := encoder.MiniLM()
//	adapter, err := model.LoadAdapter(os.DirFS("adapter"))
//	states, err := model.Forward(ctx, sequences, encoder.Options{Adapter: adapter})
//
// Weights may be float32 or int8 with a scale for each output row; arithmetic
// is float32 in either case, in the same order on every machine as far as the
// hardware allows, so that a score means the same everywhere. AVX-512 and AVX2
// give the same bits; NEON and portable Go differ from them in the last digits
// only. The build tag purego leaves the assembly out.
//
// Embedder turns texts into vectors for search.
package encoder
