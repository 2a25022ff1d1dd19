package retrieval

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestIdentifiers(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		// Codes and part numbers, in all their spellings.
		{"What does ERR-5172 mean?", "ERR-5172"},
		{"what does err-5172 mean", "err-5172"},
		{"ERR 5172, please", "ERR 5172"},
		{"ERR_5172/ERR_5173", "ERR_5172 ERR_5173"},
		{"error E42 on the display", "E42"},
		{"(AX-100B)", "AX-100B"},
		{"the 4711-A fits, the 4711A too", "4711-A"},
		{"valve 4711C at 5000m", "4711C"},
		{"pump AX-100-22/B", "AX-100-22"},
		{"ERR\u20115172 and ERR–5173", "ERR-5172 ERR-5173"},
		{"ＥＲＲ－５１７２", "ERR-5172"},
		{"ERR\u00a05172", "ERR 5172"},
		{"错误ERR-5172是什么意思", "ERR-5172"},
		{"ERR-5172 ERR-5172 err_5172", "ERR-5172"},
		{"HTTP 404", "HTTP 404"},
		{"ISO 27001 and RFC 2616", "ISO 27001 RFC 2616"},
		{"form W-2", "W-2"},
		{"sha 7f3e9a21bc", "7f3e9a21bc"},
		{"SN 00A1-93KQ", "00A1-93KQ"},
		// Orders, invoices, serial numbers.
		{"where is order 48213?", "48213"},
		{"order no. 48213", "48213"},
		{"ticket #912", "912"},
		{"invoice INV/2024/001", "INV/2024/001"},
		{"inv/2024/001 at 7 km/100", "inv/2024/001"},
		{"4711-0815-33", "4711-0815-33"},
		{"tracking 10029384", "10029384"},
		// Versions and configuration keys.
		{"new in 2.4.1", "2.4.1"},
		{"v2.4 and v2.5-rc1", "v2.4 v2.5-rc1"},
		{"set max_retries or ASKBACK_PORT", "max_retries ASKBACK_PORT"},
		{"host 192.168.0.17", "192.168.0.17"},
		// What is none.
		{"", ""},
		{"part-time e-mail and/or 24/7", ""},
		{"30-day trial, 12 months, 3rd floor, 10am, 9am-5pm, 250kg, 1080p, 5000ms, 1000WH", ""},
		{"over 5000 employees in 2024, 1,000,000 in all, 1000000 too", ""},
		{"from 2024-05-12 to 12.05.2024 or 5/12/2024 or 20240512", ""},
		{"2019-2020, 10-12, 1000-2000, 2.5, 12:30, 99.9%", ""},
		{"USD 5000, MAY 2024, UK 2023", ""},
		{"Q3, B2B, MP3, 2FA, 5G, 3D", ""},
		{"mid-2024, under-18, tier-3, Room 12", ""},
		{"naïve2000 ünder100", ""},
		{"_ __ a_b", ""},
	} {
		if got := strings.Join(Identifiers(test.text), " "); got != test.want {
			t.Errorf("Identifiers(%q)\n got %s\nwant %s", test.text, got, test.want)
		}
	}
}

// An ordinary word before a number makes no identifier of it, sure or not, so
// that one "in2019" in a text does not make codes of all years.
func TestNumbersAfterOrdinaryWords(t *testing.T) {
	for _, text := range []string{
		"sales in 2019", "In 2019", "from 2018 to 2019", "December 31", "years 2019", "the 24 hours", "a 20 kg case", "IN 2019", "since 1994", "on 15 May",
	} {
		if got := ScanIdentifiers(text); len(got) > 0 {
			t.Errorf("ScanIdentifiers(%q) finds %+v", text, got)
		}
	}
}

// Spellings in one line are the same identifier; lines differ.
func TestIdentifierKeys(t *testing.T) {
	lines := [][]string{
		{"ERR-5172", "err-5172", "ERR 5172", "err 5172", "Err_5172", "ERR5172", "ERR #5172", "ERR–5172"},
		{"ERR-5173"}, {"ERR-51720"}, {"ERR-517"}, {"ERR-05172"},
		{"2.4.1", "v2.4.1", "V2.4.1"}, {"2.41.0"}, {"2.4.10"},
		{"SKU-12-345", "sku 12-345"}, {"SKU-12345"},
		{"max_retries", "MAX_RETRIES"},
		{"AX-100B", "ax-100b", "AX100B", "AX 100B"}, {"AX-100C"},
	}
	keys := make(map[string]string)
	for _, line := range lines {
		for i, text := range line {
			found := ScanIdentifiers(text)
			if len(found) == 0 {
				t.Errorf("ScanIdentifiers(%q) finds none", text)
				continue
			}
			key := found[0].Key
			if i == 0 {
				if other, ok := keys[key]; ok {
					t.Errorf("%q and %q have the same key %q", other, text, key)
				}
				keys[key] = text
			} else if keys[key] != line[0] {
				t.Errorf("%q has key %q, not that of %q", text, key, line[0])
			}
		}
	}
}

func TestIdentifierFamilies(t *testing.T) {
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{"ERR-5172", "ERR-5171", true},
		{"ERR-5172", "ERR-99", true},
		{"ERR-5172", "E-5172", false},
		{"AX-100B", "AX-100C", true},
		{"AX-100B", "AX-200", true},
		{"AX-100", "BX-100", false},
		{"10029384", "10029385", true},
		{"10029384", "100293850", false},
		{"INV/2024/001", "INV/2024/002", true},
		{"2.4.1", "2.4.2", false},
		{"max_retries", "max_wait", false},
	} {
		a, b := ScanIdentifiers(test.a)[0].Family, ScanIdentifiers(test.b)[0].Family
		if got := a != "" && a == b; got != test.same {
			t.Errorf("%s (%q) and %s (%q) neighbours: %v, want %v", test.a, a, test.b, b, got, test.same)
		}
	}
}

func FuzzScanIdentifiers(f *testing.F) {
	for _, s := range []string{"ERR-5172", "a_b-1.2/3", "ERR 5172", "ＥＲＲ－５", "\xff1\xfe", "v1.", "#12_", "1-2-3-4"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, id := range ScanIdentifiers(s) {
			if id.Key == "" || id.Text == "" || !utf8.ValidString(id.Text) {
				t.Fatalf("%q: %+v", s, id)
			}
			letters, _, _ := count(id.Text) // without one, what stands before it may have made it sure
			again := ScanIdentifiers(id.Text)
			if id.Sure && letters > 0 && !slices.ContainsFunc(again, func(i Identifier) bool { return i.Key == id.Key }) {
				t.Fatalf("%q: %+v is not found in itself: %+v", s, id, again)
			}
		}
	})
}
