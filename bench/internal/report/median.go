package report

import "slices"

// Median makes one row of the rounds of one contestant: the median of each figure, the worst of those that count what
// went wrong, and as spread the distance of the fastest and the slowest round, as a part of the median.
func Median(rounds []Row) Row {
	out := rounds[0]
	for _, f := range figures {
		*f.of(&out) = nil
		var values []float64
		for i := range rounds {
			if v := *f.of(&rounds[i]); v != nil {
				values = append(values, *v)
			}
		}
		if len(values) == 0 {
			continue
		}
		slices.Sort(values)
		if f.worst {
			*f.of(&out) = Number(values[len(values)-1])
		} else {
			*f.of(&out) = Number(middle(values))
		}
	}
	out.Spread = spread(rounds)
	return out
}

func middle(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// spread of one round is nothing that could be known.
func spread(rounds []Row) *float64 {
	var rates []float64
	for _, r := range rounds {
		if r.Rate != nil {
			rates = append(rates, *r.Rate)
		}
	}
	if len(rates) < 2 {
		return nil
	}
	slices.Sort(rates)
	m := middle(rates)
	if m == 0 {
		return nil
	}
	return Number((rates[len(rates)-1] - rates[0]) / m)
}
