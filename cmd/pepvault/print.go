package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// jsonFlag is for embedding in each command that prints what it found.
type jsonFlag struct {
	JSON bool `name:"json" help:"Print one JSON document."`
}

// print writes a document as JSON, or what human makes of it.
func (f jsonFlag) print(p *process, document any, human func(*table)) error {
	if f.JSON {
		encoder := json.NewEncoder(p.stdout)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(document)
	}
	t := &table{out: tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)}
	human(t)
	return errors.Join(t.err, t.out.Flush())
}

// storeFlags are those of a command about the store as a whole.
type storeFlags struct {
	configFlag
	jsonFlag
}

// operatorFlags are those of a command that looks into the store.
type operatorFlags struct {
	storeFlags
}

// withDesk opens a desk for use, and closes it.
func (f operatorFlags) withDesk(ctx context.Context, p *process, use func(desk) error) error {
	config, err := f.loadStore(p)
	if err != nil {
		return err
	}
	d, err := openDesk(ctx, config)
	if err != nil {
		return err
	}
	return errors.Join(use(d), d.close())
}

// table writes aligned columns.
type table struct {
	out interface {
		io.Writer
		Flush() error
	}
	err error
}

func (t *table) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = fmt.Sprint(cell)
	}
	t.line("%s", strings.TrimRight(strings.Join(texts, "\t"), "\t"))
}

func (t *table) line(format string, args ...any) {
	_, err := fmt.Fprintf(t.out, format+"\n", args...)
	t.err = errors.Join(t.err, err)
}

// count spells a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
