package schema

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed device_peaks.csv
var shippedPeaks []byte

// peakColumns are the columns of a table of devices: a pattern that the name
// of the GPU matches, memory bandwidth, and TFLOP/s by element type.
var peakColumns = []string{"gpu", "gb_per_s", "fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "source"}

// DevicePeaksSQL declares the view device_peaks over what GPUs can do at most.
// Rows that more holds come before those that tracelake knows; nil adds none.
// more is a CSV file with a header; a column that it lacks is unknown.
func DevicePeaksSQL(more io.Reader) (string, error) {
	rows, err := readPeaks(bytes.NewReader(shippedPeaks))
	if err != nil {
		panic("BUG: device_peaks.csv: " + err.Error())
	}
	if more != nil {
		own, err := readPeaks(more)
		if err != nil {
			return "", err
		}
		rows = append(own, rows...)
	}
	var b strings.Builder
	b.WriteString("CREATE OR REPLACE VIEW device_peaks AS\nSELECT * FROM (VALUES\n")
	for i, row := range rows {
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, "  (%d, %s)", i+1, strings.Join(row, ", "))
	}
	fmt.Fprintf(&b, "\n) AS peaks(position, %s);\n", strings.Join(peakColumns, ", "))
	return b.String(), nil
}

// readPeaks reads a table of devices into literals of SQL, in the order of
// peakColumns.
func readPeaks(r io.Reader) ([][]string, error) {
	in := csv.NewReader(r)
	head, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("no header: %w", err)
	}
	head[0] = strings.TrimPrefix(head[0], "\ufeff")
	for _, name := range head {
		if !slices.Contains(peakColumns, name) {
			return nil, fmt.Errorf("unknown column %q: want %s", name, strings.Join(peakColumns, ", "))
		}
	}
	if !slices.Contains(head, "gpu") {
		return nil, fmt.Errorf("no column gpu, a pattern for the name of the GPU")
	}
	var rows [][]string
	for {
		record, err := in.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		line, _ := in.FieldPos(0)
		row := make([]string, len(peakColumns))
		for i, name := range peakColumns {
			value := ""
			if at := slices.Index(head, name); at >= 0 {
				value = strings.TrimSpace(record[at])
			}
			if row[i], err = peakLiteral(name, value); err != nil {
				return nil, fmt.Errorf("line %d: %w", line, err)
			}
		}
		rows = append(rows, row)
	}
}

func peakLiteral(name, value string) (string, error) {
	switch name {
	case "gpu":
		if _, err := regexp.Compile(value); err != nil || value == "" {
			return "", fmt.Errorf("gpu: %q is no pattern", value)
		}
		return sqlText(value), nil
	case "source":
		return sqlText(value), nil
	}
	if value == "" {
		return "NULL::DOUBLE", nil
	}
	f, err := strconv.ParseFloat(value, 64)
	if err != nil || !(f > 0) || f > 1e9 {
		return "", fmt.Errorf("%s: %q is no positive number", name, value)
	}
	return strconv.FormatFloat(f, 'f', -1, 64) + "::DOUBLE", nil
}
