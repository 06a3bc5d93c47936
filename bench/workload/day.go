package workload

import "math/rand/v2"

// What one user does in a day.
const (
	FewVisits  = 10 // on a quiet day
	ManyVisits = 30 // on a busy one
	DaySaves   = 5
)

// Visit is one connection of a device: it logs in, loads what it lacks of the
// vault, saves so many records, and leaves.
type Visit struct {
	Device int
	Saves  int
}

// Day returns what a user's devices do in a day, in its order: FewVisits to
// ManyVisits connections of two devices, or three for every other user, as far
// as the shape has them, and DaySaves saves in some of them. It follows from the
// shape's seed, the user and the part alone.
func (s Shape) Day(user, part int) []Visit {
	random := rand.New(rand.NewPCG(s.Seed^uint64(part)<<56, ^uint64(user)))
	devices := min(2+user%2, s.Devices)
	visits := make([]Visit, FewVisits+random.IntN(ManyVisits-FewVisits+1))
	for i := range visits {
		visits[i].Device = random.IntN(devices)
	}
	for range DaySaves {
		visits[random.IntN(len(visits))].Saves++
	}
	return visits
}
