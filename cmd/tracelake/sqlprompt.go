package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"tracelake/analyze/query"
	"tracelake/schema"
)

const promptHelp = `Statements end with a semicolon and may take several lines.
  .tables          tables and views
  .schema NAME     columns of a table or view, and what they mean
  .analyze [NAME]  answer of an analysis, for what SET VARIABLE run, rank, … select; without a name the list
  .format FORMAT   table, csv or json
  .rows N          rows of a table that are shown (0: all)
  .help            this text
  .quit            leave, as Ctrl-D does
Ctrl-C stops a running query, or gives up what was typed. Tab completes names.
`

// promptRows is how many rows of a table are shown at first.
const promptRows = 100

// prompt answers statements that a person types.
type prompt struct {
	db             *query.DB
	stdout, stderr io.Writer
	format         query.Format
	rows           int // that a table shows; 0 means all
	buffer         string
	line           func(ctx context.Context, prompt string) (string, error)
}

// runPrompt opens a dataset and answers until .quit or the end of the input.
func runPrompt(ctx context.Context, stdin *os.File, stdout, stderr io.Writer, o *sqlOptions, format query.Format) (err error) {
	if format == query.Parquet {
		return errUsage("sql: --format parquet needs a query")
	}
	db, err := openLake(ctx, o.lake, o.engine)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	p := &prompt{db: db, stdout: stdout, stderr: stderr, format: format, rows: promptRows}
	names, err := p.names(ctx)
	if err != nil {
		return err
	}
	h := loadHistory(historyPath())
	defer h.save()
	editor := &lineEditor{in: stdin, out: os.Stderr, history: h, complete: func(word string) string { return completion(names, word) }}
	p.line = editor.line
	fmt.Fprintf(stderr, "%s: %d tables and views. .help for help.\n", o.lake, len(names))
	return p.loop(ctx)
}

// loop returns when there is no more input. Statements that fail are reported
// and do not end it.
func (p *prompt) loop(ctx context.Context) error {
	defer divertInterrupts(func() {})() // no query is running
	for {
		text := "tracelake> "
		if p.buffer != "" {
			text = "      ...> "
		}
		line, err := p.line(ctx, text)
		switch {
		case errors.Is(err, errAborted):
			p.buffer = ""
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if p.buffer == "" && strings.HasPrefix(strings.TrimSpace(line), ".") {
			word, argument, _ := strings.Cut(strings.TrimSpace(line), " ")
			if word == ".quit" || word == ".exit" {
				return nil
			}
			p.interruptible(ctx, func(ctx context.Context) error { return p.command(ctx, word, strings.Trim(argument, " ;")) })
			continue
		}
		p.read(ctx, line)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// read adds a line to the statement that is being typed and runs what is
// complete.
func (p *prompt) read(ctx context.Context, line string) {
	ended, rest := query.Statements(p.buffer + line + "\n")
	p.buffer = rest
	if strings.TrimSpace(rest) == "" {
		p.buffer = ""
	}
	for _, statement := range ended {
		if !p.interruptible(ctx, func(ctx context.Context) error { return p.answer(ctx, statement) }) {
			return
		}
	}
}

// interruptible runs something that Ctrl-C stops, and reports how it failed.
func (p *prompt) interruptible(ctx context.Context, do func(context.Context) error) bool {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer divertInterrupts(stop)()
	err := do(ctx)
	if err == nil {
		return true
	}
	if ctx.Err() != nil {
		fmt.Fprintln(p.stderr, "stopped")
		return false
	}
	fmt.Fprintln(p.stderr, "error: "+err.Error())
	return false
}

func (p *prompt) answer(ctx context.Context, statement string) error {
	rows, err := p.db.Query(ctx, statement)
	if err != nil {
		return err
	}
	return p.show(ctx, rows)
}

func (p *prompt) analysis(ctx context.Context, a query.Analysis) error {
	rows, err := p.db.Analyze(ctx, a)
	if err != nil {
		return err
	}
	return p.show(ctx, rows)
}

func (p *prompt) show(ctx context.Context, rows query.Rows) (err error) {
	if cols := rows.Columns(); len(cols) == 0 || len(cols) == 1 && cols[0].Name == "Success" {
		return rows.Close() // there is nothing to show
	}
	if p.format != query.Table || p.rows == 0 {
		return query.Print(p.stdout, p.format, untilStopped{rows, ctx})
	}
	first := &query.First{Rows: untilStopped{rows, ctx}, Left: p.rows}
	err = query.Print(p.stdout, p.format, first)
	if first.More {
		fmt.Fprintf(p.stderr, "the first %d rows; .rows N shows more, a LIMIT asks for fewer\n", p.rows)
	}
	return err
}

// untilStopped are rows that end with an error when ctx does.
type untilStopped struct {
	query.Rows
	ctx context.Context
}

func (u untilStopped) Next(dest []any) error {
	if err := u.ctx.Err(); err != nil {
		return err
	}
	return u.Rows.Next(dest)
}

// command runs a line that starts with a dot.
func (p *prompt) command(ctx context.Context, word, argument string) error {
	switch word {
	case ".help":
		_, err := io.WriteString(p.stdout, promptHelp)
		return err
	case ".tables":
		names, err := p.names(ctx)
		if err == nil {
			_, err = io.WriteString(p.stdout, strings.Join(names, "\n")+"\n")
		}
		return err
	case ".schema":
		return p.schema(ctx, argument)
	case ".analyze":
		a, ok := query.Lookup(argument)
		if !ok {
			_, err := io.WriteString(p.stdout, analysisList())
			return err
		}
		return p.analysis(ctx, a)
	case ".format":
		format, err := query.ParseFormat(argument)
		if err != nil || format == query.Parquet {
			return fmt.Errorf("unknown format %q: want table, csv or json", argument)
		}
		p.format = format
		return nil
	case ".rows":
		n, err := strconv.Atoi(argument)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is no number of rows", argument)
		}
		p.rows = n
		return nil
	}
	return fmt.Errorf("unknown command %s; .help lists them", word)
}

// schema shows the columns of a table with what the declarations say of them.
func (p *prompt) schema(ctx context.Context, name string) error {
	if name == "" {
		return errors.New(".schema wants the name of a table; .tables lists them")
	}
	rows, err := p.db.Query(ctx, "SELECT column_name, column_type FROM (DESCRIBE "+query.Identifier(name)+")")
	if err != nil {
		return err
	}
	declared := map[string]string{}
	if t := schema.TableByName(name); t != nil {
		for i := range t.Columns {
			declared[t.Columns[i].Name] = t.Columns[i].Doc
		}
	}
	values := make([]any, 2)
	for {
		err := rows.Next(values)
		if errors.Is(err, io.EOF) {
			return rows.Close()
		}
		if err != nil {
			return errors.Join(err, rows.Close())
		}
		column := fmt.Sprint(values[0])
		line := fmt.Sprintf("%-24s %-10s %s", column, values[1], declared[column])
		fmt.Fprintln(p.stdout, strings.TrimRight(line, " "))
	}
}

// names returns the tables and views.
func (p *prompt) names(ctx context.Context) ([]string, error) {
	rows, err := p.db.Query(ctx, "SELECT table_name FROM information_schema.tables ORDER BY table_name")
	if err != nil {
		return nil, err
	}
	var names []string
	values := make([]any, 1)
	for {
		err := rows.Next(values)
		if errors.Is(err, io.EOF) {
			return names, rows.Close()
		}
		if err != nil {
			return nil, errors.Join(err, rows.Close())
		}
		names = append(names, fmt.Sprint(values[0]))
	}
}
