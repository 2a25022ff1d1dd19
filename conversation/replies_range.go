package conversation

import (
	"math"
	"strings"
)

// span is a range of numbers in an option's text: "under 19", "19 or 20", "21
// or over".
type span struct {
	low, high         float64
	lowOpen, highOpen bool // the end itself is outside
	unit              string
	scale             float64 // hours, for times
}

func (s span) holds(v float64) bool {
	return (v > s.low || v == s.low && !s.lowOpen) && (v < s.high || v == s.high && !s.highOpen)
}

var (
	belowWords  = wordSet("under below before unter moins menos less fewer smaller younger 不 到 से कम")
	uptoWords   = wordSet("to within until max maximum most bis hasta jusqu jusque innerhalb hoechstens")
	aboveWords  = wordSet("over above after more longer older than ueber mehr plus mas beyond exceeding")
	fromWords   = wordSet("from least ab mindestens desde des minimum")
	orMoreWords = wordSet("more over older above up longer greater mehr aelter plus mas mayor 以 上 और")
	orLessWords = wordSet("less under younger below fewer weniger juenger moins menos")
	rangeWords  = wordSet("到 至 se to or and until bis oder a ou y o")
)

// spanOf reads the one range of numbers in a text.
func spanOf(text string) (span, bool) {
	ws := plains(text)
	var at []int
	for i, w := range ws {
		if isNumber(w) {
			at = append(at, i)
		}
	}
	if len(at) == 0 { // "more than a year"
		for i, w := range ws {
			if oneOf[w] && i+1 < len(ws) && hours[ws[i+1]] > 0 {
				at = append(at, i)
			}
		}
	}
	value := func(i int) (float64, bool) {
		if oneOf[ws[i]] {
			return 1, true
		}
		return amount(ws[i])
	}
	before := func(i, n int, set map[string]bool) bool { return i-n >= 0 && set[ws[i-n]] }
	s := span{low: math.Inf(-1), high: math.Inf(1)}
	switch len(at) {
	case 2:
		a, b := at[0], at[1]
		dash := b == a+1 && strings.ContainsAny(text, "-–")
		between := b == a+3 && rangeWords[ws[a+2]] // "250 g to 4 kg"
		if !(b == a+2 && rangeWords[ws[a+1]] || dash || between) {
			return s, false
		}
		x, ok1 := amount(ws[a])
		y, ok2 := amount(ws[b])
		s.unit, s.scale = unitAfter(ws, b)
		if between && s.scale > 0 {
			if _, scale := unitAfter(ws, a); scale > 0 {
				x *= scale / s.scale
			}
		}
		if !ok1 || !ok2 || x >= y {
			return s, false
		}
		s.low, s.high = x, y
	case 1:
		i := at[0]
		v, ok := value(i)
		if !ok {
			return s, false
		}
		s.unit, s.scale = unitAfter(ws, i)
		after := i + 1
		if s.unit != "" && isWordUnit(ws, after) {
			after++
		}
		or := after+1 < len(ws) && orWords[ws[after]] || after+1 < len(ws) && ws[after] == "and"
		switch {
		case or && orMoreWords[ws[after+1]], strings.Contains(text, "+"):
			s.low = v
		case or && orLessWords[ws[after+1]]:
			s.high = v
		case i >= 2 && ws[i-2] == "不" && (ws[i-1] == "满" || ws[i-1] == "到" || ws[i-1] == "足"):
			s.high, s.highOpen = v, true
		case before(i, 1, belowWords), before(i, 2, belowWords) && ws[i-1] == "than", before(i, 2, belowWords) && (ws[i-1] == "de" || ws[i-1] == "d" || ws[i-1] == "als"):
			s.high, s.highOpen = v, true
		case before(i, 2, fromWords) && ws[i-1] == "than", before(i, 1, fromWords):
			s.low = v
		case before(i, 1, aboveWords), before(i, 2, aboveWords) && (ws[i-1] == "de" || ws[i-1] == "d" || ws[i-1] == "als"):
			s.low, s.lowOpen = v, true
		case before(i, 1, uptoWords):
			s.high = v
		default:
			return s, false
		}
	default:
		return s, false
	}
	if s.scale > 0 {
		s.low, s.high = s.low*s.scale, s.high*s.scale
	}
	return s, true
}

// amount reads "30,000", "80k", "7".
func amount(w string) (float64, bool) {
	v, ok := number(w)
	if ok && strings.HasSuffix(w, "k") && len(w) > 1 && isDigit(w, len(w)-2) {
		v *= 1000
	}
	return v, ok
}

func isWordUnit(ws []string, i int) bool { return i < len(ws) && !isNumber(ws[i]) }

// unitAfter gives the word behind a number, if it is no small word, and for a
// time its length in hours.
func unitAfter(ws []string, i int) (unit string, scale float64) {
	if i+1 >= len(ws) || len(content(ws[i+1:i+2])) == 0 && hours[ws[i+1]] == 0 && !shortUnits[ws[i+1]] {
		return "", 0
	}
	return ws[i+1], scaleOf(ws[i+1])
}

// scaleOf is what a unit is worth beside others of its kind: a time in hours, a
// weight in kilograms, a length in metres. 0 if it is none.
func scaleOf(unit string) float64 {
	switch unit {
	case "g", "gram", "grams", "gramm", "grammes", "gramos":
		return 0.001
	case "kg", "kilo", "kilos", "kilogram", "kilograms", "m", "metre", "metres", "meter", "meters", "metro", "metros":
		return 1
	case "cm":
		return 0.01
	case "km", "t", "tonne", "tonnes", "tons":
		return 1000
	}
	return hours[unit]
}

var shortUnits = wordSet("g l m h t v w")

var oneOf = wordSet("a an one eine einen ein einer une un una 一 एक")

var aboutAge = wordSet("years year old yrs yo jahre jahr alt ans an anos ano 岁 साल")

// byRange knows a number by the option in whose range it lies, if at least two
// options are ranges and only one holds it, in the same unit.
func (f *folder) byRange(p part) (reading, bool) {
	ws := forms(p.words)
	at := -1
	for i, w := range ws {
		if oneOf[w] && i+1 < len(ws) && hours[ws[i+1]] > 0 && at < 0 { // "an hour"
			at = i
			continue
		}
		if isNumber(w) || moreNumbers[w] > 0 || cardinals[w] > 1 {
			if at >= 0 {
				return reading{}, false
			}
			at = i
		}
	}
	if at < 0 || len(ws) > 8 || len(f.opts) < 2 {
		return reading{}, false
	}
	v, ok := amount(ws[at])
	if oneOf[ws[at]] {
		v, ok = 1, true
	} else if !isNumber(ws[at]) {
		v, ok = numeral(ws[at])
	}
	if !ok {
		return reading{}, false
	}
	unit, scale := unitAfter(ws, at)
	if joined := unitOf(ws[at]); isNumber(ws[at]) && joined != "" && joined != "k" { // "249g"
		unit, scale = joined, scaleOf(joined)
	}
	foreign, _ := f.foreign(p.words)
	found, spans := -1, 0
	for i, o := range f.p.Options {
		s, ok := spanOf(o.Text)
		if !ok {
			continue
		}
		spans++
		x := v
		switch {
		case scale > 0 && s.scale > 0:
			x = v * scale
		case unit != "" && s.unit != "" && likeness(unit, s.unit) < 0.7 && unit != s.unit, unit != "" && s.unit == "" && !aboutAge[unit]:
			return reading{}, false
		case unit == "" && s.unit != "" && len(foreign) > 0:
			return reading{}, false // "my daughter is 6" is no weight
		case s.scale > 0:
			x = v * s.scale
		}
		if s.holds(x) {
			if found >= 0 {
				return reading{}, false
			}
			found = i
		}
	}
	if spans < 2 || found < 0 {
		return reading{}, false
	}
	return reading{act: actChoose, options: []int{found}, extra: stripAll(p, lexicon().frames), rule: "range", weak: true}, true
}
