package runner

// firstPeople is where a search begins that goes far enough up.
const firstPeople = 100

// refinements is how often a search halves the gap between the most that was good
// and the least that was not.
const refinements = 2

// ladder searches for the most people that are fast: twice as many each time, and
// then between the last good number and the first bad one.
type ladder struct {
	most      int // people there are
	good, bad int // the most good and the least bad so far; 0: none
	refined   int // steps between a good and a bad number
}

// next is how many to try next; false: it is found out.
func (l *ladder) next() (people int, more bool) {
	switch {
	case l.good == 0 && l.bad == 0:
		return l.first(), true
	case l.bad == 0 && l.good < l.most:
		return min(2*l.good, l.most), true
	case l.bad == 0, l.refined >= refinements:
		return 0, false
	}
	people = twoDigits((l.good + l.bad) / 2)
	if people <= l.good || people >= l.bad {
		return 0, false
	}
	return people, true
}

// first leaves room for at least two steps.
func (l *ladder) first() int {
	first := firstPeople
	for first > 1 && 2*first > l.most {
		first /= 2
	}
	return first
}

// took notes what became of a number.
func (l *ladder) took(people int, good bool) {
	if l.good > 0 && l.bad > 0 {
		l.refined++
	}
	if good {
		l.good = people
	} else {
		l.bad = people
	}
}

// twoDigits rounds down, so that nobody takes a figure for more exact than it is.
func twoDigits(n int) int {
	unit := 1
	for n/unit >= 100 {
		unit *= 10
	}
	return n / unit * unit
}
