package query

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Selection is a way to choose what an analysis looks at.
type Selection struct {
	Name     string // in headers, and with two dashes on the command line
	Variable string // of the SQL
}

// Selections are all there are.
var Selections = []Selection{
	{"run", "run"},
	{"rank", "rank"},
	{"trace", "trace"},
	{"device", "device"},
	{"iteration", "iteration"},
	{"from", "from_ns"},
	{"to", "to_ns"},
}

// ErrSelection says that an analysis cannot be limited to what is selected.
var ErrSelection = errors.New("cannot be limited that way")

// Heeds returns nil for a variable that the analysis heeds or that is none of
// the Selections, and an error that wraps ErrSelection for one that its answer
// would ignore.
func (a *Analysis) Heeds(variable string) error {
	for _, s := range Selections {
		if s.Variable == variable && !slices.Contains(a.Selects, s.Name) {
			return fmt.Errorf("%s %w: it takes %s, not --%s", a.Name, ErrSelection, a.options(), s.Name)
		}
	}
	return nil
}

// options lists what the analysis heeds as on the command line.
func (a *Analysis) options() string {
	last := len(a.Selects) - 1
	switch last {
	case -1:
		return "no selection"
	case 0:
		return "--" + a.Selects[0]
	}
	return "--" + strings.Join(a.Selects[:last], ", --") + " and --" + a.Selects[last]
}

// SelectedBy says which options the analysis heeds, in a sentence.
func (a *Analysis) SelectedBy() string { return "Takes " + a.options() + "." }
