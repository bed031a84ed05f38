package schema

import (
	"strings"
	"testing"
)

func TestDevicePeaks(t *testing.T) {
	sql, err := DevicePeaksSQL(strings.NewReader("\ufeffgpu,bf16,gb_per_s\nMine|it's,12.5,900\n"))
	if err != nil {
		t.Fatal(err)
	}
	first := "(1, 'Mine|it''s', 900::DOUBLE, NULL::DOUBLE, NULL::DOUBLE, NULL::DOUBLE, NULL::DOUBLE, 12.5::DOUBLE, NULL::DOUBLE, NULL::DOUBLE, '')"
	if !strings.Contains(sql, first) || !strings.Contains(sql, "'H100', 3352::DOUBLE") {
		t.Errorf("no row %s in\n%s", first, sql)
	}
	for text, want := range map[string]string{
		"":                       "no header",
		"name,bf16\nx,1\n":       "unknown column",
		"bf16\n1\n":              "no column gpu",
		"gpu,bf16\n(,1\n":        "line 2: gpu",
		"gpu,bf16\n,1\n":         "line 2: gpu",
		"gpu,bf16\nx,fast\n":     "line 2: bf16",
		"gpu,bf16\nx,-1\n":       "line 2: bf16",
		"gpu,bf16\nx,NaN\n":      "line 2: bf16",
		"gpu,bf16\nx,1\ny,1,2\n": "line 3",
	} {
		if _, err := DevicePeaksSQL(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
