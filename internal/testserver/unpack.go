package testserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// suitePackage is a server's package in another suite of Debian than the system's.
type suitePackage struct {
	suite, pkg string
	program    string // its path in the package
	database   *Database
	// argument is added to the arguments. ROOT in it is the folder that the package is unpacked in.
	argument string
}

// sid's packages change, and are missing now and then: no test can require them.
var suitePackages = map[string]suitePackage{
	"mysql":      {suite: "sid", pkg: "mysql-server-core", program: "usr/sbin/mysqld", database: MySQL, argument: "--basedir=ROOT/usr"},
	"redis-6":    {suite: "bullseye", pkg: "redis-server", program: "usr/bin/redis-server", database: Redis},
	"redis-8":    {suite: "trixie", pkg: "redis-server", program: "usr/bin/redis-server", database: Redis},
	"valkey-8":   {suite: "trixie", pkg: "valkey-server", program: "usr/bin/valkey-server", database: Redis},
	"valkey-sid": {suite: "sid", pkg: "valkey-server", program: "usr/bin/valkey-server", database: Redis},
}

// Unpack downloads a server and the libraries that it needs from another suite of Debian, unpacks them in the folder, which
// must not exist, and returns the environment variable that makes tests start the server. Nothing is installed, and apt's
// lists do not change. It needs apt-get and the archive's keys. Names are mysql, redis-6, redis-8, valkey-8 and valkey-sid;
// it takes the newest version of the suite. If the tests run as root, the user nobody must be able to read the folder.
func Unpack(ctx context.Context, name, folder string) (setting string, err error) {
	o, ok := suitePackages[name]
	if !ok {
		return "", fmt.Errorf("testserver: no server is named %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(suitePackages)), ", "))
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return "", err
	}
	if strings.ContainsAny(folder, `'";`) {
		return "", fmt.Errorf("testserver: folder %s has a quotation mark or a semicolon", folder)
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return "", err
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return "", err
	}
	root := filepath.Join(folder, "root")
	packages, err := download(ctx, o, filepath.Join(folder, "apt"))
	if err != nil {
		return "", err
	}
	for _, p := range packages {
		if out, err := exec.CommandContext(ctx, "dpkg-deb", "--extract", p, root).CombinedOutput(); err != nil {
			return "", fmt.Errorf("testserver: unpacking %s: %w\n%s", p, err, end(out))
		}
	}
	loader, err := findFile(root, "lib/*/ld-linux-*.so.?", "usr/lib/*/ld-linux-*.so.?", "lib/*/ld-2.*.so")
	if err != nil {
		return "", err
	}
	triplet := filepath.Base(filepath.Dir(loader))
	var libraries []string
	for _, l := range []string{"lib/" + triplet, "usr/lib/" + triplet, "usr/lib/" + triplet + "/systemd"} {
		libraries = append(libraries, filepath.Join(root, l))
	}
	// Its own loader and libraries: the system's are of another version.
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' --library-path '%s' '%s' \"$@\"", loader, strings.Join(libraries, ":"), filepath.Join(root, o.program))
	if o.argument != "" {
		script += " '" + strings.Replace(o.argument, "ROOT", root, 1) + "'"
	}
	start := filepath.Join(folder, "start")
	if err := os.WriteFile(start, []byte(script+"\n"), 0o755); err != nil {
		return "", err
	}
	return o.database.variable + "=" + start, nil
}

// download downloads the package and all that it needs, by an apt with its own state, in which nothing is installed.
func download(ctx context.Context, o suitePackage, folder string) (packages []string, err error) {
	config, err := suiteConfig(ctx, o.suite, folder)
	if err != nil {
		return nil, err
	}
	for _, args := range [][]string{{"update"}, {"install", "-y", "--download-only", "--no-install-recommends", o.pkg}} {
		if err := suiteGet(ctx, config, args...); err != nil {
			return nil, fmt.Errorf("testserver: %s of %s: %w", o.pkg, o.suite, err)
		}
	}
	return filepath.Glob(filepath.Join(folder, "cache/archives/*.deb"))
}

// suiteConfig writes the configuration of an apt that has its state in the folder and knows one suite of Debian.
func suiteConfig(ctx context.Context, suite, folder string) (config string, err error) {
	site, err := archive(ctx)
	if err != nil {
		return "", err
	}
	for _, sub := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(folder, sub), 0o755); err != nil {
			return "", err
		}
	}
	settings := ""
	for _, s := range [][2]string{
		{"Dir::State", folder}, {"Dir::State::lists", folder + "/lists"}, {"Dir::State::status", folder + "/status"},
		{"Dir::Cache", folder + "/cache"}, {"Dir::Etc::sourcelist", folder + "/sources.list"}, {"Dir::Etc::sourceparts", "/dev/null"},
		{"APT::Sandbox::User", "root"}, // apt's own user must not write here
	} {
		settings += fmt.Sprintf("%s \"%s\";\n", s[0], s[1])
	}
	source := fmt.Sprintf("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s main\n", site, suite)
	for file, text := range map[string]string{"status": "", "sources.list": source, "apt.conf": settings} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	return filepath.Join(folder, "apt.conf"), nil
}

// suiteGet runs apt-get with a configuration of [suiteConfig], in whose folder it leaves its files.
func suiteGet(ctx context.Context, config string, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q"}, args...)...)
	cmd.Dir, cmd.Env = filepath.Dir(config), append(os.Environ(), "APT_CONFIG="+config)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", args[0], err, end(out))
	}
	return nil
}

// installDebian unpacks the package of Debian that package.txt names, as suite and package=version, without what it needs.
func installDebian(ctx context.Context, dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "package.txt"))
	if err != nil {
		return err
	}
	suite, pkg, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	folder := filepath.Join(dir, "apt")
	config, err := suiteConfig(ctx, suite, folder)
	if err != nil {
		return err
	}
	for _, args := range [][]string{{"update"}, {"download", pkg}} {
		if err := suiteGet(ctx, config, args...); err != nil {
			return err
		}
	}
	debs, err := filepath.Glob(filepath.Join(folder, "*.deb"))
	if err != nil {
		return err
	}
	for _, deb := range debs {
		if err := run(ctx, dir, "dpkg-deb", "--extract", deb, "."); err != nil {
			return err
		}
	}
	return os.RemoveAll(folder)
}

// archive returns the URL that the system's own packages come from.
func archive(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", "Origin: Debian", "Label: Debian").Output()
	if err != nil {
		return "", fmt.Errorf("testserver: asking apt-get for its archive: %w", err)
	}
	site, _, _ := strings.Cut(string(out), "\n")
	if site == "" {
		return "", errors.New("testserver: apt-get has no archive of Debian; run `apt-get update` first")
	}
	return site, nil
}

// findFile returns the first file below the root, not a link, that matches a pattern.
func findFile(root string, patterns ...string) (string, error) {
	for _, p := range patterns {
		found, err := filepath.Glob(filepath.Join(root, p))
		if err != nil {
			return "", err
		}
		for _, path := range found {
			if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("testserver: no %v below %s", patterns, root)
}
