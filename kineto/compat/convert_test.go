package compat

import "testing"

func TestToInt(t *testing.T) {
	for in, want := range map[string]string{ // want "" is a refusal
		`1`: "1", `-7`: "-7", `1.9`: "1", `-1.9`: "-1", `true`: "1", `false`: "0", `1e20`: "100000000000000000000",
		`"12"`: "12", `" 2 "`: "2", `"+3"`: "3", `"-0"`: "0", `"007"`: "7", `"1_0"`: "10", `"٣"`: "3", `"\u001c4\u00a0"`: "4",
		`"99999999999999999999"`: "99999999999999999999",
		`""`:                     "", `"1.0"`: "", `"0x1"`: "", `"1__0"`: "", `"_1"`: "", `"1_"`: "", `"+-1"`: "", `"1 2"`: "",
		`null`: "", `[1]`: "", `{}`: "", `NaN`: "", `Infinity`: "",
	} {
		v, err := parse([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if n, err := toInt(&v); err == nil {
			got = n.str()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

func TestToFloat(t *testing.T) {
	for in, want := range map[string]string{
		`1`: "1.0", `2.5`: "2.5", `true`: "1.0", `18446744073709551621`: "1.8446744073709552e+19",
		`" 1.5 "`: "1.5", `"1_0.5_0e1_0"`: "105000000000.0", `".5"`: "0.5", `"5."`: "5.0", `"1e-3"`: "0.001", `"+1E5"`: "100000.0",
		`"inf"`: "inf", `"-Infinity"`: "-inf", `"NaN"`: "nan", `"1e999"`: "inf", `"٣.٥"`: "3.5",
		`""`: "", `"."`: "", `"e5"`: "", `"1e"`: "", `"1e+"`: "", `"0x1p3"`: "", `"1__0"`: "", `"1_.5"`: "", `"1._5"`: "", `"in"`: "", `"--1"`: "",
		`null`: "", `[]`: "",
	} {
		v, err := parse([]byte(in))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if f, err := toFloat(&v); err == nil {
			got = floatRepr(f)
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}
