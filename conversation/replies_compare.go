package conversation

import "strings"

// comparison is a way to order options by the numbers in their texts.
type comparison struct {
	words string
	sign  float64 // +1: the highest wins
	what  string  // "number", "year" or "time"
}

var comparisons = []comparison{
	{"cheaper cheapest cheap lower lowest guenstigere guenstigste guenstigeren billigere billigste billigeren barato economica economico 便 宜 सस्ता सस्ती सस्ते", -1, "number"},
	{"dearer dearest pricier priciest expensive teurere teuerste teureren caro cara cher chere 贵 महंगा महंगी महंगे", +1, "number"},
	{"weaker weakest schwaechere schwaechste smaller smallest kleinere kleinste kleineren petit petite menor pequeno pequena छोटा छोटी छोटे 小", -1, "number"},
	{"stronger strongest staerkere staerkste staerkeren fort forte fuerte bigger biggest larger largest higher highest groessere groesste groesseren hoehere hoechste grand grande mayor बड़ा बड़ी बड़े 大", +1, "number"},
	{"newer newest latest recent new neu neue neuen neuere neueste neuesten neueren recente nuevo nueva reciente 新 नया नई नए नवीनतम", +1, "year"},
	{"older oldest old alt alte alten earlier earliest aeltere aelteste aelteren fruehere ancien ancienne vieux viejo vieja antiguo antigua 旧 老 पुराना पुरानी पुराने", -1, "year"},
	{"shorter shortest kuerzere kuerzeste kuerzeren court courte corto corta 短", -1, "time"},
	{"longer longest laengere laengste laengeren long longue largo larga 长", +1, "time"},
}

var besideComparison = wordSet("the one ones option of them two more most le la les el los las plus moins mas menos der die das den option opcion l est c s it that variante version model plan 的 那 个 较 更 最 款 一 सबसे वाला वाली वाले ज्यादा")

// tellsNone says whether a word is one of the dialogue's that tells no option
// from the others.
func (f *folder) tellsNone(w word) bool {
	foreign, known := f.foreign([]word{w})
	if len(foreign) > 0 || known == 0 {
		return false
	}
	is, _ := f.match([]word{w})
	return len(is) == 0
}

// some gives the options of which a word speaks.
func (f *folder) some(w word) []int {
	is, _ := f.match([]word{w})
	return is
}

// byComparison knows "the cheaper one", if each option holds one number of the
// kind and one of them is ahead.
func (f *folder) byComparison(p part) (reading, bool) {
	if len(f.opts) < 2 {
		return reading{}, false
	}
	var c *comparison
	among := upTo(len(f.opts))
	sign := 1.0
	for i, w := range p.words {
		found := false
		for k := range comparisons {
			for x := range strings.FieldsSeq(comparisons[k].words) {
				if plain(x) == w.plain {
					c, found = &comparisons[k], true
				}
			}
		}
		switch {
		case found:
			if i > 0 && (p.words[i-1].plain == "less" || p.words[i-1].plain == "least" || p.words[i-1].plain == "moins" || p.words[i-1].plain == "menos") {
				sign = -1
			}
		case w.plain == "less" || w.plain == "least" || besideComparison[w.plain]:
		case f.tellsNone(w): // "the old rules", and all options are rules
		case len(f.some(w)) > 1: // "the larger dorm"
			among = f.some(w)
		default:
			return reading{}, false
		}
	}
	if c == nil {
		return reading{}, false
	}
	best, tied := -1, false
	var top float64
	for _, i := range among {
		o := f.p.Options[i]
		v, ok := measure(o.Text, c.what)
		if !ok {
			return reading{}, false
		}
		v *= c.sign * sign
		switch {
		case best < 0 || v > top:
			best, top, tied = i, v, false
		case v == top:
			tied = true
		}
	}
	if tied {
		return reading{}, false
	}
	return reading{act: actChoose, options: []int{best}, rule: "comparison"}, true
}

var hours = map[string]float64{
	"minute": 1. / 60, "minutes": 1. / 60, "min": 1. / 60, "minuten": 1. / 60, "minutos": 1. / 60,
	"hour": 1, "hours": 1, "h": 1, "stunde": 1, "stunden": 1, "heure": 1, "heures": 1, "hora": 1, "horas": 1,
	"day": 24, "days": 24, "tag": 24, "tage": 24, "tagen": 24, "jour": 24, "jours": 24, "dia": 24, "dias": 24, "天": 24, "दिन": 24,
	"week": 168, "weeks": 168, "woche": 168, "wochen": 168, "semaine": 168, "semaines": 168, "semana": 168, "semanas": 168, "周": 168, "हफ्ते": 168,
	"month": 720, "months": 720, "monat": 720, "monate": 720, "mois": 720, "mes": 720, "meses": 720, "月": 720, "महीने": 720,
	"year": 8760, "years": 8760, "jahr": 8760, "jahre": 8760, "an": 8760, "ans": 8760, "ano": 8760, "anos": 8760, "年": 8760, "साल": 8760,
}

// measure gives the one number of that kind in an option's text.
func measure(text, what string) (float64, bool) {
	var found []float64
	ws := plains(text)
	for i, w := range ws {
		if !isNumber(w) {
			continue
		}
		v, ok := number(w)
		if !ok {
			return 0, false
		}
		switch what {
		case "year":
			if v < 1900 || v > 2100 { // or a version: "4.2", "release 2"
				if len(ws) > 3 && !strings.Contains(w, ".") {
					continue
				}
			}
		case "time":
			if i+1 < len(ws) {
				if u, ok := hours[ws[i+1]]; ok {
					found = append(found, v*u)
				}
			}
			continue
		}
		found = append(found, v)
	}
	if len(found) == 0 && what != "number" {
		return measure(text, "number") // no date, no time: whatever there is one of
	}
	if len(found) != 1 {
		return 0, false
	}
	return found[0], true
}
