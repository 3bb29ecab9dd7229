// Package badge draws the state of a subscription as a small picture for pages of others, in SVG. It is given a label
// and a state, and so says nothing of where the subscription is: badges are copied.
package badge

import (
	"encoding/xml"
	"strings"
	"unicode"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// MediaType is what Draw returns.
const MediaType = "image/svg+xml"

// MaxLabel is how many characters a label has at most: a few words, so that the state stays in sight beside them.
const MaxLabel = 32

// None stands for a state that is not known yet, as in tables of the command line.
const None = "<none>"

// Pixels of a badge.
const (
	height   = 20
	baseline = 14 // of the text, from the top
	fontSize = 11
	margin   = 6 // beside a text, on both sides
)

// Pixels that a character has, about those of Verdana in fontSize. A viewer with another font is told to fit the text
// to the sum, so that no text reaches beyond its part.
const (
	narrowWidth = 4
	usualWidth  = 7
	wideWidth   = 11
	fullWidth   = 12
)

const (
	narrow = "fijlrtI.,:;!|'`()[]{}-/\\ "
	wide   = "mwMW@%"
	// firstPictograph begins the blocks of symbols as wide as high, emoji among them.
	firstPictograph = 0x1F000
)

// Colours of the parts. White text has a contrast of at least 4.5 to 1 on each of them, as WCAG 2 wants it. None is
// green: AtLatestKnown says which version was chosen, and not that the operator works, which is its phase.
const (
	colourLabel    = "#24292f"
	colourSettled  = "#0b5cad"
	colourPending  = "#8a5300"
	colourFailed   = "#b3261e"
	colourUnknown  = "#57606a"
	colourOfLetter = "#ffffff"
)

// CheckLabel refuses labels that nobody sees, or that hold characters nobody sees: such as those that turn the
// direction of writing could show a state as another word. The error has the rule, and field as its place.
func CheckLabel(field, label string) error {
	if strings.ContainsFunc(label, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return errs.New(errs.Invalid, "label holds a character that cannot be seen").At(field, rule.Text)
	}
	if !strings.ContainsFunc(label, func(r rune) bool { return !unicode.IsSpace(r) && !unicode.IsMark(r) }) {
		return errs.New(errs.Invalid, "label has nothing that can be seen").At(field, rule.Required)
	}
	return nil
}

type picture struct {
	XMLName   xml.Name `xml:"svg"`
	Namespace string   `xml:"xmlns,attr"`
	Width     int      `xml:"width,attr"`
	Height    int      `xml:"height,attr"`
	Role      string   `xml:"role,attr"`
	Name      string   `xml:"aria-label,attr"`
	Title     string   `xml:"title"`
	Parts     []part   `xml:"rect"`
	Group     group    `xml:"g"`
}

type part struct {
	X      int    `xml:"x,attr"`
	Width  int    `xml:"width,attr"`
	Height int    `xml:"height,attr"`
	Colour string `xml:"fill,attr"`
}

type group struct {
	Colour string `xml:"fill,attr"`
	Font   string `xml:"font-family,attr"`
	Size   int    `xml:"font-size,attr"`
	Texts  []text `xml:"text"`
}

type text struct {
	X      int    `xml:"x,attr"`
	Y      int    `xml:"y,attr"`
	Length int    `xml:"textLength,attr"`
	Adjust string `xml:"lengthAdjust,attr"`
	Text   string `xml:",chardata"`
}

// Draw returns the badge of a state as an SVG document: the label, and beside it the state, which is a word of
// model.Subscription.ShownState. The same input gives the same bytes.
func Draw(label, state string) ([]byte, error) {
	if state == "" {
		state = None
	}
	left, right := width(label), width(state)
	middle, end := left+2*margin, left+right+4*margin
	said := label + ": " + state
	of := func(x, length int, s string) text {
		return text{X: x, Y: baseline, Length: length, Adjust: "spacingAndGlyphs", Text: s}
	}
	raw, err := xml.MarshalIndent(picture{
		Namespace: "http://www.w3.org/2000/svg", Width: end, Height: height, Role: "img", Name: said, Title: said,
		Parts: []part{
			{Width: middle, Height: height, Colour: colourLabel},
			{X: middle, Width: end - middle, Height: height, Colour: colourOf(state)},
		},
		Group: group{
			Colour: colourOfLetter, Font: "Verdana,'DejaVu Sans',sans-serif", Size: fontSize,
			Texts: []text{of(margin, left, label), of(middle+margin, right, state)},
		},
	}, "", "  ")
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "write a badge")
	}
	return append(raw, '\n'), nil
}

// colourOf is the colour of a state. A word that is not known here is shown without a judgement.
func colourOf(state string) string {
	switch state {
	case model.StateAtLatestKnown:
		return colourSettled
	case model.StateUpgradePending, model.StateUpgradeAvailable, "BundleUnpacking", "InstallPlanPending",
		"ClusterCordoned",
		"InstallPlanMissing", "CatalogSourcesUnhealthy", "PackageDeprecated", "ChannelDeprecated", "BundleDeprecated",
		model.StateDeprecated:
		return colourPending
	case model.StateUpgradeFailed, "ResolutionFailed", "BundleUnpackFailed", "InstallPlanFailed":
		return colourFailed
	default:
		return colourUnknown
	}
}

// width is that of a text in pixels.
func width(s string) int {
	sum := 0
	for _, r := range s {
		switch {
		case unicode.IsMark(r): // stands above or below another
		case strings.ContainsRune(narrow, r):
			sum += narrowWidth
		case strings.ContainsRune(wide, r):
			sum += wideWidth
		case r >= firstPictograph, unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
			sum += fullWidth
		default:
			sum += usualWidth
		}
	}
	return sum
}
