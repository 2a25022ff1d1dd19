package encoder

import (
	"embed"
	"io/fs"
	"sync"
)

// The base that ships: sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0),
// in int8 as training/convert_base.py writes it.
//
//go:embed minilm/config.json minilm/vocab.txt minilm/model.safetensors
var minilm embed.FS

var loadMiniLM = sync.OnceValues(func() (*Model, error) {
	folder, err := fs.Sub(minilm, "minilm")
	if err != nil {
		return nil, err
	}
	return Load(folder)
})

// MiniLM gives the embedded base, all-MiniLM-L6-v2: 6 layers of 384, up to 512
// tokens. It is loaded on the first call and shared by all.
func MiniLM() (*Model, error) { return loadMiniLM() }
