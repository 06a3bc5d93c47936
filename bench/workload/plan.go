package workload

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"
)

// Kind is what a device asks for.
type Kind uint8

const (
	Read     Kind = iota // one record
	Save                 // one record
	Download             // the whole vault
)

var kinds = [...]string{Read: "read", Save: "save", Download: "download"}

// String names a kind in one word.
func (k Kind) String() string { return kinds[k] }

// MarshalJSON writes the name.
func (k Kind) MarshalJSON() ([]byte, error) { return json.Marshal(k.String()) }

// Mix says of how many operations in a hundred a whole download, and how many a
// save; the rest are reads of one record.
type Mix struct {
	Download int `json:"download"`
	Save     int `json:"save"`
	// Of is what the others count by; 0 is 100.
	Of int `json:"of,omitempty"`
}

// StandardMix is what devices in use ask for: 8 % full downloads, 20 % saves,
// 72 % reads.
var StandardMix = Mix{Download: 8, Save: 20}

// PeopleMix and PeopleRate are what a person's devices ask for: in ten minutes
// five saves, ten reads and two loads of the whole vault, at random moments. It is
// harsher than real use, in which a vault is looked at some times a day and rarely
// changed, and more alike than it, as nobody is away.
var PeopleMix = Mix{Download: 2, Save: 5, Of: 17}

// PeopleRate is operations a second of one person.
const PeopleRate = 17.0 / 600

// Op is one operation of a plan.
type Op struct {
	// At is when it is due, from the beginning of the plan; only Open sets it.
	At           time.Duration
	Kind         Kind
	User, Device int
	Record       int    // of Read and Save
	Version      uint32 // of Save: unlike any other save's of the same vault
}

// Plan is an endless row of operations, each a function of the plan and its
// place alone.
type Plan struct {
	Shape Shape
	Mix   Mix
	// Part tells apart plans for one population: their operations differ, and
	// their saves have other versions. 0 to MaxPart.
	Part int
}

const (
	// MaxPart is the last part that has versions of its own.
	MaxPart = 1<<8 - 1
	// MaxOps bounds the operations of one part.
	MaxOps = 1 << 24
)

// Op returns the i-th operation, from 0 to below MaxOps; others panic.
func (p Plan) Op(i int) Op {
	if i < 0 || i >= MaxOps || p.Part < 0 || p.Part > MaxPart {
		panic(fmt.Sprintf("workload: no operation %d in part %d", i, p.Part))
	}
	random := rand.New(rand.NewPCG(p.Shape.Seed^uint64(p.Part)<<56, uint64(i)))
	op := Op{
		User:   random.IntN(p.Shape.Users),
		Device: random.IntN(p.Shape.Devices),
	}
	record := random.IntN(p.Shape.Records)
	of := p.Mix.Of
	if of == 0 {
		of = 100
	}
	switch share := random.IntN(of); {
	case share < p.Mix.Download:
		op.Kind = Download
	case share < p.Mix.Download+p.Mix.Save:
		op.Kind, op.Record, op.Version = Save, record, uint32(p.Part)<<24|uint32(i+1)
	default:
		op.Record = record
	}
	return op
}

// Open returns the operations that are due within a time when rate of them a
// second come on average. People come independently of each other, so the gaps
// are exponential; all of it is fixed by the plan.
func (p Plan) Open(rate float64, within time.Duration) []Op {
	gaps := rand.New(rand.NewPCG(^p.Shape.Seed, uint64(p.Part)))
	ops := make([]Op, 0, int(rate*within.Seconds()*1.1)+16)
	for at := 0.0; len(ops) < MaxOps; {
		at += gaps.ExpFloat64() / rate
		due := time.Duration(at * float64(time.Second))
		if due >= within {
			break
		}
		op := p.Op(len(ops))
		op.At = due
		ops = append(ops, op)
	}
	return ops
}
