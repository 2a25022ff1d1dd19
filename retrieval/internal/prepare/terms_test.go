package prepare

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTerms(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", ""},
		{"Contractors are paid monthly.", "contractor paid month"},
		{"The leaves, leaving; leave!", "leav leav leav"},
		{"what is it", ""},
		{"Part-time e-mail", "part time parttim e mail email"},
		{"the company’s policy, don't", "compani polici"},
		{"résumé Übergröße Łódź ŒUVRE", "resum ubergross lodz oeuvr"},
		{"resume\u0301", "resum"},
		{"ＡＢＣ １２３", "abc 123 =ABC123"},
		{"ﬁne ﬂuﬀy", "fine fluffi"},
		{"ERR-5172", "err 5172 =ERR5172"},
		{"Version 2.4.1", "version 2 4 1 2.4.1 =2.4.1"},
		{"max_retries=3", "max retri 3 =MAXRETRIES"},
		{"12.5 %", "12 5 12.5"},
		{"a.b.c", "b c"},
		{"--- - _ ' ...", ""},
		{"年次有給休暇", "年次 次有 有給 給休 休暇"},
		{"契", "契"},
		{"スーパー", "スー ーパ パー"},
		{"ｶﾀｶﾅ", "カタ タカ カナ"},
		{"API設計とERR-51", "api 設計 計と err 51 =ERR51"},
		{"연차 휴가", "연차 휴가"},
		{"วันลา", "วัน นล ลา"},
		{"Απόφαση ΤΗΣ Νόμος", "αποφαση τησ νομοσ"},
		{"ещё Йод", "еще иод"},
		{"كِتَاب", "كتاب"},
		{"naïve\u00adly \u200bzero", "naiv zero"},
		{"bad \xff\xfe bytes", "bad byte"},
		{strings.Repeat("x", 130), strings.Repeat("x", 64) + " " + strings.Repeat("x", 64) + " xx"},
	} {
		if got := strings.Join(Terms(test.text), " "); got != test.want {
			t.Errorf("%q\n got %s\nwant %s", test.text, got, test.want)
		}
	}
}

func FuzzTerms(f *testing.F) {
	for _, s := range []string{"ERR-5172 don't", "年次a有給", "e\u0301\xff", "a-", "1.2.", "ー", "วันลา", strings.Repeat("é", 70)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, term := range Terms(s) {
			if term == "" || !utf8.ValidString(term) || strings.ContainsAny(term, " \n") {
				t.Fatalf("%q gives the term %q", s, term)
			}
		}
	})
}
