package documents

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/askback/askback/retrieval"
)

// loadTable reads CSV or TSV, each row as "column: value; column: value".
func loadTable(ctx context.Context, data []byte, d *retrieval.Document) ([]string, error) {
	text, err := decodeText(data)
	if err != nil {
		return nil, err
	}
	rows := csv.NewReader(strings.NewReader(text))
	rows.Comma = delimiter(text)
	rows.FieldsPerRecord = -1
	rows.LazyQuotes = true
	rows.ReuseRecord = true

	var names []string
	for number := 1; ; number++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("not a table: %w", err)
		}
		if number == 1 && isHeader(row) {
			names = append(names, row...)
			continue
		}
		fields := make([]field, 0, len(row))
		for i, value := range row {
			f := field{value: value}
			if i < len(names) {
				f.name = names[i]
			}
			fields = append(fields, f)
		}
		d.Blocks = append(d.Blocks, recordBlock(nil, fields, fmt.Sprintf("row %d", number)))
	}
}

// delimiter finds what stands between the values: of the usual marks, the one
// that the most of the first lines have the same number of.
func delimiter(text string) rune {
	best, bestScore := ',', 0
	for _, mark := range []rune{',', ';', '\t', '|'} {
		rows := csv.NewReader(strings.NewReader(text[:min(len(text), 64<<10)]))
		rows.Comma = mark
		rows.FieldsPerRecord = -1
		rows.LazyQuotes = true
		same, columns := 0, 0
		for range 20 {
			row, err := rows.Read()
			if err != nil {
				break
			}
			if columns == 0 {
				columns = len(row)
			}
			if len(row) == columns && columns > 1 {
				same++
			}
		}
		if score := same*1000 + min(columns, 999); same > 0 && score > bestScore {
			best, bestScore = mark, score
		}
	}
	return best
}

// isHeader reports a first row that names the columns: short words, all
// different.
func isHeader(row []string) bool {
	const longest, most = 64, 4096 // bytes
	seen := make(map[string]bool, len(row))
	size := 0
	for _, name := range row {
		name = strings.TrimSpace(name)
		size += len(name)
		if name == "" || len(name) > longest || size > most || seen[name] || strings.Trim(name, "0123456789.,-+%€$£ ") == "" {
			return false
		}
		seen[name] = true
	}
	return len(row) > 0
}
