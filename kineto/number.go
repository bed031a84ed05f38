package kineto

import (
	"math"
	"math/big"
	"math/bits"
	"strings"
)

var pow10 = [...]uint64{1, 10, 100, 1000, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18}

// digits8 reads up to eight decimal digits at i and returns how many there
// were. b must be readable for eight bytes.
func digits8(b []byte, i int) (v uint64, n int) {
	w := load64(b, i) ^ (ones * '0') // digits become 0..9
	// A byte above 9 sets its high bit when 0x76 is added; carries only reach
	// bytes behind the first such byte, which do not matter.
	t := (w | (w + ones*0x76)) & highs
	n = bits.TrailingZeros64(t) >> 3
	w <<= uint(8-n) * 8 // leading zeros in front; 0 where there is no digit
	w = w*10 + w>>8     // pairs, then fours, then eight
	w = ((w&0x000000FF000000FF)*(100+1000000<<32) + (w>>16&0x000000FF000000FF)*(1+10000<<32)) >> 32
	return w & math.MaxUint32, n
}

// uint18 reads up to 18 decimal digits at i. With more than 18 digits n is 19
// and v has no meaning.
func uint18(b []byte, i int) (v uint64, n int) {
	v, n = digits8(b, i)
	if n < 8 {
		return v, n
	}
	w, k := digits8(b, i+8)
	v, n = v*pow10[k]+w, n+k
	if k < 8 {
		return v, n
	}
	w, k = digits8(b, i+16)
	if k > 2 {
		return 0, 19
	}
	return v*pow10[k] + w, n + k
}

// parseInt reads a JSON integer at i. ok is false for anything else that
// stands there (a fraction, an exponent, too many digits).
func parseInt(b []byte, i int) (v int64, e int, ok bool) {
	s := i
	if b[i] == '-' {
		i++
	}
	u, n := uint18(b, i)
	e = i + n
	if n == 0 || n > 18 || !isDelim(b[e]) || (b[i] == '0' && n > 1) {
		return 0, e, false
	}
	v = int64(u)
	if i > s {
		v = -v
	}
	return v, e, true
}

// parseMicros reads a JSON decimal number of microseconds at i as nanoseconds,
// exactly. frac is the number of digits behind the point. ok is false where
// the general path has to look: exponents, more digits than nanoseconds have.
func parseMicros(b []byte, i int) (ns int64, e, frac int, ok bool) {
	s := i
	if b[i] == '-' {
		i++
	}
	u, n := uint18(b, i)
	e = i + n
	if n == 0 || n > 18 || u >= math.MaxInt64/1000 || (b[i] == '0' && n > 1) {
		return 0, e, 0, false
	}
	u *= 1000
	if b[e] == '.' {
		f, k := digits8(b, e+1)
		if k == 0 || k > 3 {
			return 0, e, 0, false
		}
		u += f * pow10[3-k]
		e += 1 + k
		frac = k
	}
	if !isDelim(b[e]) {
		return 0, e, 0, false
	}
	ns = int64(u)
	if i > s {
		ns = -ns
	}
	return ns, e, frac, true
}

// parseFloat reads a JSON number at i where a quotient of two exact floats is
// the correctly rounded result. ok is false where it may not be.
func parseFloat(b []byte, i int) (f float64, e int, ok bool) {
	s := i
	if b[i] == '-' {
		i++
	}
	u, n := uint18(b, i)
	e = i + n
	if n == 0 || n > 15 || (b[i] == '0' && n > 1) {
		return 0, e, false
	}
	k := 0
	if b[e] == '.' {
		var v uint64
		v, k = digits8(b, e+1)
		if k == 0 || n+k > 15 {
			return 0, e, false
		}
		u = u*pow10[k] + v
		e += 1 + k
	}
	if !isDelim(b[e]) || u >= 1<<53 {
		return 0, e, false
	}
	f = float64(u) / float64(pow10[k])
	if i > s {
		f = -f
	}
	return f, e, true
}

// decimalNS turns the text of any decimal number of microseconds into
// nanoseconds, rounding half to even where the text is finer. ok is false for
// text that is no number or does not fit.
func decimalNS(text string) (ns int64, ok bool) {
	neg, mant, exp, ok := splitDecimal(text)
	if !ok {
		return 0, false
	}
	exp += 3 // microseconds to nanoseconds
	if mant == "" {
		return 0, true
	}
	if len(mant)+exp > 19 || len(mant)+exp < -1 {
		return 0, len(mant)+exp < -1
	}
	if len(mant) > 400 { // digits that far down can only break a tie
		exp += len(mant) - 400
		mant = mant[:399] + "1"
	}
	v, _ := new(big.Int).SetString(mant, 10)
	if exp >= 0 {
		v.Mul(v, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(exp)), nil))
	} else {
		d := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-exp)), nil)
		r := new(big.Int)
		v.QuoRem(v, d, r)
		if c := r.Lsh(r, 1).Cmp(d); c > 0 || (c == 0 && v.Bit(0) == 1) {
			v.Add(v, big.NewInt(1))
		}
	}
	if !v.IsInt64() {
		return 0, false
	}
	ns = v.Int64()
	if neg {
		ns = -ns
	}
	return ns, true
}

// splitDecimal splits a decimal number into digits without leading zeros and a
// power of ten. It accepts what JSON accepts and a leading plus or point.
func splitDecimal(s string) (neg bool, mant string, exp int, ok bool) {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		neg, s = s[0] == '-', s[1:]
	}
	if k := strings.IndexAny(s, "eE"); k >= 0 {
		e := s[k+1:]
		eneg := false
		if e != "" && (e[0] == '-' || e[0] == '+') {
			eneg, e = e[0] == '-', e[1:]
		}
		if e == "" {
			return false, "", 0, false
		}
		for _, c := range []byte(e) {
			if c < '0' || c > '9' {
				return false, "", 0, false
			}
			exp = min(exp*10+int(c-'0'), 1e6)
		}
		if eneg {
			exp = -exp
		}
		s = s[:k]
	}
	whole, frac, _ := strings.Cut(s, ".")
	if whole == "" && frac == "" {
		return false, "", 0, false
	}
	for _, c := range []byte(whole + frac) {
		if c < '0' || c > '9' {
			return false, "", 0, false
		}
	}
	exp -= len(frac)
	mant = strings.TrimLeft(whole+frac, "0")
	return neg, mant, exp, true
}
