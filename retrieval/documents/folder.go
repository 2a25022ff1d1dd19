package documents

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Folder is a folder on disk as a file system that nothing leads out of, not
// even a link. Unlike os.DirFS it opens files whose names are not UTF-8.
type Folder struct {
	root *os.Root
}

// OpenFolder opens a folder. Close it after use.
func OpenFolder(dir string) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err == nil {
		return &Folder{root}, nil
	}
	if info, statErr := os.Stat(dir); statErr == nil && !info.IsDir() {
		return nil, fmt.Errorf("opening the folder %s: it is a file; name the folder that holds it", dir)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missingFolder(dir)
	}
	return nil, fmt.Errorf("opening the folder %s: %w", dir, err)
}

// missingFolder is the error of a folder that is not there, an fs.ErrNotExist.
type missingFolder string

func (m missingFolder) Error() string {
	return "opening the folder " + string(m) + ": it does not exist"
}
func (missingFolder) Is(target error) bool { return target == fs.ErrNotExist }

// Close closes the folder.
func (f *Folder) Close() error { return f.root.Close() }

// Open opens a file or folder by its slash-separated path.
func (f *Folder) Open(name string) (fs.File, error) {
	return f.root.Open(filepath.FromSlash(name))
}

// Stat describes a file, that a link leads to if name is one.
func (f *Folder) Stat(name string) (fs.FileInfo, error) {
	return f.root.Stat(filepath.FromSlash(name))
}

// ReadDir lists a folder, sorted by name.
func (f *Folder) ReadDir(name string) ([]fs.DirEntry, error) {
	dir, err := f.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}
