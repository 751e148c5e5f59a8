# terminal.awk makes an SVG of a terminal, in light and dark, from what a command printed:
# LC_ALL=C awk -v title='make demo' -v desc='...' -f terminal.awk OUTPUT. A line that begins with "$ " is typed.

function escaped(s) { gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); gsub(/>/, "\\&gt;", s); return s }

function columns(s) { gsub(/[\200-\277]/, "", s); return length(s) } # of UTF-8, read as bytes

{ line[NR] = $0; if (columns($0) > widest) widest = columns($0) }

END {
	column = 8.4; row = 20 # of the font's size, 14
	width = widest * column + 40; height = NR * row + 68
	printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" aria-labelledby=\"title desc\">\n", width, height, width, height
	printf "  <title id=\"title\">%s</title>\n  <desc id=\"desc\">%s</desc>\n", escaped(title), escaped(desc)
	print "  <style>"
	print "    .bg { fill: #f6f8fa; stroke: #d1d9e0; } .dot { fill: #d1d9e0; } .typed { font-weight: 600; }"
	print "    text { fill: #1f2328; font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; white-space: pre; } .name { fill: #59636e; }"
	print "    @media (prefers-color-scheme: dark) {"
	print "      .bg { fill: #0d1117; stroke: #3d444d; } .dot { fill: #3d444d; } text { fill: #f0f6fc; } .name { fill: #9198a1; }"
	print "    }"
	print "  </style>"
	printf "  <rect class=\"bg\" x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n", width - 1, height - 1
	print "  <circle class=\"dot\" cx=\"24\" cy=\"22\" r=\"6\"/><circle class=\"dot\" cx=\"44\" cy=\"22\" r=\"6\"/><circle class=\"dot\" cx=\"64\" cy=\"22\" r=\"6\"/>"
	printf "  <text class=\"name\" x=\"%d\" y=\"27\" text-anchor=\"middle\">%s</text>\n", width / 2, escaped(title)
	for (i = 1; i <= NR; i++) # With its length given, a line has its columns in every font.
		if (line[i] != "")
			printf "  <text%s x=\"20\" y=\"%d\" textLength=\"%.1f\" xml:space=\"preserve\">%s</text>\n", line[i] ~ /^\$ / ? " class=\"typed\"" : "", 40 + i * row, columns(line[i]) * column, escaped(line[i])
	print "</svg>"
}
