package runner

import (
	"slices"
	"testing"
)

func TestLadder(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name          string
		most, ceiling int // more than the ceiling are not fast
		want          []int
		good, bad     int
	}{
		{"between two", 6400, 4700, []int{100, 200, 400, 800, 1600, 3200, 6400, 4800, 4000}, 4000, 4800},
		{"just a power", 6400, 400, []int{100, 200, 400, 800, 600, 500}, 400, 500},
		{"beyond all", 800, 5000, []int{100, 200, 400, 800}, 800, 0},
		{"the most is between", 1000, 5000, []int{100, 200, 400, 800, 1000}, 1000, 0},
		{"below the first", 800, 30, []int{100, 50, 25, 37, 31}, 25, 31},
		{"nobody", 400, 0, []int{100, 50, 25, 12, 6, 3, 1}, 0, 1},
		{"few people", 8, 5, []int{3, 6, 4, 5}, 5, 6},
		{"one", 1, 1, []int{1}, 1, 0},
	} {
		up := ladder{most: test.most}
		var got []int
		for people, more := up.next(); more && len(got) < 20; people, more = up.next() {
			got = append(got, people)
			up.took(people, people <= test.ceiling)
		}
		if !slices.Equal(got, test.want) || up.good != test.good || up.bad != test.bad {
			t.Errorf("%s: tried %v, between %d and %d; want %v, %d and %d", test.name, got, up.good, up.bad, test.want, test.good, test.bad)
		}
	}
}
