package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// lineBytes bounds a line of a file.
const lineBytes = 1 << 20

// Reader reads a results file record by record, for who wants the raw samples;
// Load is for the figures.
type Reader struct {
	// Environment is the first line.
	Environment Environment

	lines *bufio.Reader
	line  int
	cut   bool
	ended bool // the verdict has come
}

// NewReader reads the environment. The error is ErrDamaged or ErrSchema, or
// what r returned.
func NewReader(r io.Reader) (*Reader, error) {
	reader := &Reader{lines: bufio.NewReaderSize(r, 64<<10)}
	text, err := reader.next()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("line 1: no environment: %w", ErrDamaged)
	}
	if err != nil {
		return nil, err
	}
	var head struct {
		Record string `json:"record"`
		Schema int    `json:"schema"`
	}
	if json.Unmarshal(text, &head) != nil || head.Record != "environment" {
		return nil, fmt.Errorf("line 1: no environment: %w", ErrDamaged)
	}
	if head.Schema != Schema {
		return nil, fmt.Errorf("line 1: its format is %d, this program reads %d: %w", head.Schema, Schema, ErrSchema)
	}
	err = json.Unmarshal(text, &reader.Environment)
	if err == nil {
		err = plausible(reader.Environment)
	}
	if err != nil {
		return nil, fmt.Errorf("line 1: %w: %w", err, ErrDamaged)
	}
	return reader, nil
}

// Cut reports, once Next has returned io.EOF, that the last line was
// incomplete: the run was killed while it wrote it.
func (r *Reader) Cut() bool { return r.cut }

// Next returns the next record, or io.EOF. A line that can't be read, that holds
// a number which nobody can have measured or stands behind the verdict is
// ErrDamaged, with its number; only an incomplete last one is passed over.
func (r *Reader) Next() (Record, error) {
	text, err := r.next()
	if err != nil {
		return nil, err
	}
	record, err := decode(text)
	if err == nil && r.ended {
		err = fmt.Errorf("a %s behind the verdict", record.kind())
	}
	if err == nil {
		err = plausible(record)
	}
	if err != nil {
		return nil, r.damaged(err)
	}
	_, r.ended = record.(Verdict)
	return record, nil
}

// damaged is ErrDamaged of the line that was read last.
func (r *Reader) damaged(err error) error {
	return fmt.Errorf("line %d: %w: %w", r.line, err, ErrDamaged)
}

// next returns a line without its end, valid until the next call.
func (r *Reader) next() ([]byte, error) {
	var long []byte
	for {
		part, err := r.lines.ReadSlice('\n')
		if len(long)+len(part) > lineBytes {
			return nil, fmt.Errorf("line %d: longer than %d bytes: %w", r.line+1, lineBytes, ErrDamaged)
		}
		switch {
		case err == nil && long == nil:
			r.line++
			return bytes.TrimSuffix(part, []byte{'\n'}), nil
		case err == nil:
			r.line++
			return bytes.TrimSuffix(append(long, part...), []byte{'\n'}), nil
		case errors.Is(err, bufio.ErrBufferFull):
			long = append(long, part...)
		case errors.Is(err, io.EOF):
			last := append(long, part...)
			if json.Valid(last) { // only its end is missing
				r.line++
				return last, nil
			}
			r.cut = len(last) > 0
			return nil, io.EOF
		default:
			return nil, err
		}
	}
}

// decode reads one line.
func decode(text []byte) (Record, error) {
	var head struct {
		Record string `json:"record"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, err
	}
	switch head.Record {
	case "operation":
		return decodeAs[Operation](text)
	case "phase":
		return decodeAs[Phase](text)
	case "process":
		return decodeAs[Process](text)
	case "noise":
		return decodeAs[Noise](text)
	case "machine":
		return decodeAs[Machine](text)
	case "storage":
		return decodeAs[Storage](text)
	case "check":
		return decodeAs[Check](text)
	case "gate":
		return decodeAs[Gate](text)
	case "writes":
		return decodeAs[Writes](text)
	case "syncs":
		return decodeAs[Syncs](text)
	case "capacity-step":
		return decodeAs[CapacityStep](text)
	case "capacity":
		return decodeAs[Capacity](text)
	case "verdict":
		return decodeAs[Verdict](text)
	}
	return nil, fmt.Errorf("no record is called %q", head.Record)
}

func decodeAs[R Record](text []byte) (Record, error) {
	var record R
	err := json.Unmarshal(text, &record)
	return record, err
}

// Load reads a whole file into the results that its Recorder had. Its errors are
// those of Reader; counts that contradict each other are ErrDamaged, too.
func Load(r io.Reader) (*Results, error) { return LoadEach(r, func(Operation) {}) }

// LoadEach is Load for who wants the samples as well: each is called with all of
// them, in their order, while the file is read.
func LoadEach(r io.Reader, each func(Operation)) (*Results, error) {
	reader, err := NewReader(r)
	if err != nil {
		return nil, err
	}
	results := newResults(reader.Environment)
	for {
		record, err := reader.Next()
		if errors.Is(err, io.EOF) {
			results.Cut = reader.Cut()
			return results, nil
		}
		if err != nil {
			return nil, err
		}
		switch record := record.(type) {
		case Operation:
			each(record)
		case Verdict:
			if err := results.consistent(record); err != nil {
				return nil, reader.damaged(err)
			}
		}
		results.add(record)
	}
}

// LoadFile is Load of a file; the error names it.
func LoadFile(path string) (*Results, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	results, err := Load(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return results, nil
}
