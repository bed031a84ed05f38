package redact

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Names says which names are replaced.
type Names string

// Choices of names.
const (
	AllNames     Names = "all"     // all but those that mark iterations and copies
	PrivateNames Names = "private" // those that are not known to be public
	NoNames      Names = "none"    // only what they hold of paths, addresses and the like
)

// Options say what is replaced.
type Options struct {
	Names Names
	Key   string         // placeholders of equal keys are equal; "" draws one
	Keep  *regexp.Regexp // names that match stay
	PIDs  bool           // replace process and thread IDs, too
}

// Policy decides about each text of a trace, and counts what it replaced. It is
// not safe for concurrent use.
type Policy struct {
	o     Options
	key   []byte
	cache map[Text]string
	pids  map[int64]int64
	taken map[int64]bool
	found map[string]*Count
	memo  map[memoKey]memo
	log   []string // kinds replaced since the last decision
}

// memo is a decision about a text, with the kinds that it replaced.
type memoKey struct {
	rule *rule
	text string
}

type memo struct {
	text  string
	kinds []string
}

// decide decides about a text by a rule.
func (p *Policy) decide(rl *rule, text string) string {
	f := rl.text
	if f == nil {
		f = hidden
	}
	k := memoKey{rl, text}
	if m, ok := p.memo[k]; ok {
		for _, kind := range m.kinds {
			p.found[kind].Places++
		}
		return m.text
	}
	p.log = p.log[:0]
	out := f(p, text)
	if len(text) < maxMemoText {
		if len(p.memo) >= maxCache {
			clear(p.memo)
		}
		p.memo[k] = memo{out, slices.Clone(p.log)}
	}
	return out
}

// maxMemoText bounds the texts whose decisions are remembered.
const maxMemoText = 4096

// Text is a text with what it is.
type Text struct{ Kind, Value string }

// Count says how often a kind of text was replaced, with an example.
type Count struct {
	Kind    string
	Places  int64
	Example string
}

// New returns a policy.
func New(o Options) (*Policy, error) {
	switch o.Names {
	case "":
		o.Names = PrivateNames
	case AllNames, PrivateNames, NoNames:
	default:
		return nil, fmt.Errorf("names %q: want all, private or none", o.Names)
	}
	p := &Policy{o: o, key: []byte(o.Key), cache: map[Text]string{}, pids: map[int64]int64{}, taken: map[int64]bool{}, found: map[string]*Count{}, memo: map[memoKey]memo{}}
	if o.Key == "" {
		p.key = make([]byte, 32)
		if _, err := rand.Read(p.key); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Counts lists what was replaced, by kind.
func (p *Policy) Counts() (out []Count) {
	for _, k := range slices.Sorted(maps.Keys(p.found)) {
		out = append(out, *p.found[k])
	}
	return out
}

// Kinds of texts.
const (
	kindName    = "name"
	kindIdent   = "identifier" // within the name of a kernel
	kindModule  = "module"
	kindPath    = "path"
	kindFunc    = "function"
	kindHost    = "host"
	kindProcess = "process"
	kindThread  = "thread"
	kindUUID    = "uuid"
	kindURL     = "url"
	kindEmail   = "email"
	kindIP      = "ip"
	kindSecret  = "token"
	kindKey     = "key"
	kindValue   = "value"
	kindMessage = "message"
	kindPID     = "pid"
)

// maxCache bounds the texts whose placeholders are remembered.
const maxCache = 1 << 17

// isPlaceholder matches what replace returns, which is never replaced again.
var isPlaceholder = pattern(`^redacted_[a-z]+_[0-9a-f]{12}$`)

// uuidPrefix marks UUIDs that stand for others.
const uuidPrefix = "5edac7ed-0000-8000-"

var uuidPlaceholder = pattern(`^(GPU-|MIG-)?` + uuidPrefix + `[0-9a-f]{4}-[0-9a-f]{12}$`)

func (p *Policy) digest(t Text) []byte {
	m := hmac.New(sha256.New, p.key)
	m.Write([]byte(t.Kind + "\x00" + t.Value))
	return m.Sum(nil)
}

// replace returns the placeholder of a text.
func (p *Policy) replace(kind, text string) string {
	if text == "" || isPlaceholder().MatchString(text) || uuidPlaceholder().MatchString(text) {
		return text
	}
	c := p.found[kind]
	if c == nil {
		c = &Count{Kind: kind, Example: shorten(text)}
		p.found[kind] = c
	}
	c.Places++
	p.log = append(p.log, kind)
	if len(text) >= maxMemoText {
		return p.placeholder(Text{kind, text})
	}
	t := Text{kind, text}
	if r, ok := p.cache[t]; ok {
		return r
	}
	r := p.placeholder(t)
	if len(p.cache) >= maxCache {
		clear(p.cache)
	}
	p.cache[t] = r
	return r
}

// placeholder makes the text that stands for another.
func (p *Policy) placeholder(t Text) string {
	sum := p.digest(t)
	if t.Kind == kindUUID {
		return uuidPrefix + hex.EncodeToString(sum[:2]) + "-" + hex.EncodeToString(sum[2:8])
	}
	return "redacted_" + t.Kind + "_" + hex.EncodeToString(sum[:6])
}

// minPID is the smallest number that is taken for that of a process and not of
// a GPU.
const minPID = 256

// maxPIDs bounds how many process and thread IDs are told apart.
const maxPIDs = 1 << 20

// pid replaces the ID of a process or thread, where that is asked for. Main
// threads keep the ID of their process.
func (p *Policy) pid(n int64) int64 {
	if !p.o.PIDs || n < minPID {
		return n
	}
	if r, ok := p.pids[n]; ok {
		return r
	}
	r := int64(binary.BigEndian.Uint64(p.digest(Text{kindPID, strconv.FormatInt(n, 10)}))>>1)%15_000_000 + 1_000_000 // 24 bits, as reports of Nsight Systems have
	for p.taken[r] {
		r++
	}
	if len(p.pids) < maxPIDs {
		p.pids[n], p.taken[r] = r, true
	}
	c := p.found[kindPID]
	if c == nil {
		c = &Count{Kind: kindPID, Example: strconv.FormatInt(n, 10)}
		p.found[kindPID] = c
	}
	c.Places++
	return r
}

// Parts of texts that go wherever they stand.
var parts = []struct {
	kind string
	re   func() *regexp.Regexp
}{
	{kindURL, pattern(`\b[A-Za-z][A-Za-z0-9+.-]{1,15}://[^\s"'<>]+`)},
	{kindEmail, pattern(`[\w.%+-]+@[\w-]+(\.[\w-]+)+`)},
	{kindUUID, pattern(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`)},
	{kindIP, pattern(`\b(\d{1,3}\.){3}\d{1,3}\b|\b([0-9a-fA-F]{1,4}:){3,7}[0-9a-fA-F]{1,4}\b`)},
	{kindSecret, pattern(`\b(hf_|ghp_|gho_|github_pat_|sk-|xox[bap]-|AKIA|glpat-)[\w-]{8,}|\b[0-9a-fA-F]{32,}\b`)},
	{kindPath, pattern(`(?:~|[A-Za-z]:[\\/]|\.{0,2}/)[\w.@+~-]+(?:[\\/][\w.@+~-]+)*`)},
}

// scrub replaces the parts of a text that are private wherever they stand.
func (p *Policy) scrub(text string) string {
	for _, x := range parts {
		text = x.re().ReplaceAllStringFunc(text, func(s string) string { return p.replace(x.kind, s) })
	}
	return text
}

// name decides about a name; public tells whether it is known to be public.
func (p *Policy) name(kind, text string, public bool) string {
	switch {
	case text == "" || isPlaceholder().MatchString(text):
		return text
	case marks().MatchString(text):
		return p.mark(text)
	case p.o.Keep != nil && p.o.Keep.MatchString(text):
		return text
	case p.o.Names == NoNames:
		return p.scrub(text)
	case p.o.Names == PrivateNames && public:
		return text
	}
	if mark, ok := p.engine(text); ok {
		return mark
	}
	return p.replace(kind, text)
}

// marks are names on which the meaning of a trace depends: iterations, copies
// and sets.
var marks = pattern(strings.ReplaceAll(`^(ProfilerStep\s?#\d+|stormlog\.iteration/.*|execute_(context|generation|new|cached|prefill|decode|mixed|sqsq|sqsk|sq|sk|\d|[_()])+|step\[(EXTEND|DECODE|MIXED|IDLE|PREFILL|TARGET_VERIFY|DRAFT_EXTEND|SPLIT_PREFILL)( (bs|toks)=\d+)*\]|execute_diffusion_[\dx_]+|Memcpy \w{4,7} \(MEMORY -> MEMORY\)|Memset \(MEMORY\)|graph \d+)$`, "MEMORY", "(Unknown|Pageable|Pinned|Host|Device|Array|Managed|Device Static|Managed Static)"))

// engineMark matches other names that our reader takes for the step of a
// serving engine.
var engineMark = pattern(`^(execute_diffusion_)(.+)()$|^(step\[)(.*)( bs=\d+)\b.*\]$`)

// engine replaces the free part of the mark of an engine.
func (p *Policy) engine(text string) (string, bool) {
	m := engineMark().FindStringSubmatch(text)
	switch {
	case m == nil:
		return "", false
	case m[1] != "":
		return m[1] + p.replace(kindName, m[2]), true
	}
	return m[4] + p.replace(kindName, m[5]) + m[6] + "]", true
}

var stormlogMark = pattern(`^(stormlog\.iteration/)([^/]*)/(.*)$`)

var numeric = pattern(`^(step-?|iteration-?)?\d*$`)

// mark keeps a name that marks something; who produced it and what it calls it
// goes.
func (p *Policy) mark(text string) string {
	m := stormlogMark().FindStringSubmatch(text)
	if m == nil {
		return text
	}
	id := m[3]
	if !numeric().MatchString(id) {
		id = p.replace(kindName, id)
	}
	return m[1] + p.replace(kindName, m[2]) + "/" + id
}

// plain are texts that hold numbers: sizes, lists of them, addresses.
var plain = pattern(`^[\s\[\](){},:;.+\-eE\d]*$|^0x[0-9a-fA-F]{1,16}$|^(True|False|None|true|false|null|-?inf|-?nan|Infinity|-Infinity|NaN)?$`)

// number keeps a text that holds numbers.
func (p *Policy) number(text string) string {
	if plain().MatchString(text) && !ipOnly().MatchString(text) {
		return text
	}
	return p.replace(kindValue, text)
}

var ipOnly = pattern(`\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}`)

// vocabulary keeps a text of public words and numbers.
func (p *Policy) vocabulary(kind, text string) string {
	if plain().MatchString(text) && !ipOnly().MatchString(text) || publicWords(text) {
		return text
	}
	return p.replace(kind, text)
}

// path replaces a path and keeps the suffix of sources.
func (p *Policy) path(text string) string {
	if text == "" {
		return text
	}
	for _, suffix := range []string{".py", ".json"} {
		if base, ok := strings.CutSuffix(text, suffix); ok {
			return p.replace(kindPath, base) + suffix
		}
	}
	return p.replace(kindPath, text)
}

// pidText replaces a process or thread ID in a text.
func (p *Policy) pidText(text string) string {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return text
	}
	return strconv.FormatInt(p.pid(n), 10)
}

// shorten cuts an example.
func shorten(text string) string {
	if r := []rune(text); len(r) > 80 {
		return string(r[:80]) + "…"
	}
	return text
}
