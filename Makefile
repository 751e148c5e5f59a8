# Every target needs Go and make only, unless its line names more.
MODULES := $(patsubst %/go.mod,%,$(shell find . -name go.mod -not -path '*/node_modules/*'))
BIN     := $(CURDIR)/bin
# make test PKG=./dedup/... ARGS='-run TestX -v'
PKG  ?=
ARGS ?=

.PHONY: help
help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The commands that run the handler with each store. Drivers take minutes to compile: only the commands of STORE are built.
DEMO_HANDLERS = $(if $(filter postgres mariadb sqlite,$(STORE)),./orders/sqlorders,$(if $(filter redis,$(STORE)),./orders/redisorders,./orders/worker ./orders/lambda))
.PHONY: demo
demo: ## Commit and publish 5,000 orders, take the store away and kill a relay and a worker in the middle, redrive what was rejected, count every effect (STORE=postgres, mariadb, sqlite or redis; ENDPOINT=... for LocalStack or localaws)
	cd examples && go build -tags lambda.norpc -o $(BIN)/ ./orders/demo ./orders/publish $(DEMO_HANDLERS)
	cd examples/orders && $(if $(STORE),STORE=$(STORE)) $(if $(ENDPOINT),AWS_ENDPOINT_URL=$(ENDPOINT)) $(if $(DYNAMODB_ENDPOINT),AWS_ENDPOINT_URL_DYNAMODB=$(DYNAMODB_ENDPOINT)) $(BIN)/demo

.PHONY: telemetry
telemetry: ## Run the demo under Prometheus and a collector: every query of the dashboard has data, every rule is evaluated; two minutes (skipped where Prometheus is not installed)
	cd examples/orders/telemetry && TELEMETRY=1 go test -count=1 -v -run '^TestDemo$$' .

# internal/release compiles the module many times.
TESTED_ALL = $(filter required install,$(EMULATORS))
# Packages are tested in this order, one for each core at a time: a long one that comes last would run alone.
LONG = ./dedup/sqlstore/... ./dedup/dynamostore/... ./internal/hosttest ./sqsworker ./internal/ops ./internal/proof/...
# Go's cache of results sees no change of a file outside of the module: the tests of these read some. Those of releases use the ports of
# README and the pages, and build much: they run last.
READERS = $(if $(TESTED_ALL),./internal/release/...) ./cmd/sqsonce/... ./localstack/cmd/localaws/...

.PHONY: test
test: export RAPID_CHECKS ?= 50
test: ## Run every test of every module (EMULATORS=required: with the emulators too, or fail)
	@echo "this takes about 9 minutes on two cores, and compiles for some more the first time; make test PKG=./dedup/... tests one folder"
	@go run ./internal/testserver/install -check
	@[ "$${BROWSER:-off}" != off ] || echo "the console is not tested in a browser: make console-test"
	@[ -n "$(TESTED_ALL)" ] || echo "what releases and README's first hour build is not tested: EMULATORS=required"
	@set -e; export BROWSER=$${BROWSER:-off}; \
		$(if $(PKG),,go test -vet=off -timeout 30m $(ARGS) $(LONG) $(patsubst %,%/...,$(filter-out ./cmd/sqsonce ./internal/release ./localstack/cmd/localaws,$(MODULES)));) \
		go test -vet=off -timeout 30m -count=1 $(ARGS) $(or $(PKG),$(READERS))

.PHONY: console-test
console-test: ## Test the pages of sqsonce console in Chromium (skipped where it is not installed; BROWSER=required: or fail; ARGS=-update writes the screenshots of docs/)
	cd cmd/sqsonce/internal/consoletest && go test . -count=1 -v $(ARGS)

.PHONY: emulators
emulators: ## Install the emulators that tests compare with, 1 GB in the user's cache (needs Python 3.12, Java, npm), Prometheus (Debian), databases and a browser (Debian, root)
	go run ./internal/testserver/install

# The packages with goroutines of ours. Searches and simulations in one goroutine, processes, and bounds of an hour that repeat what shorter
# tests do show a race detector nothing.
# The long ones are first.
RACED = ./sqsworker ./internal/ops ./dedup/dynamostore ./localstack/esm ./fifo/... ./lambda . ./dedup ./control ./dedup/memstore ./sqsworker/ecsprotect ./emf ./internal/deadletter ./internal/host ./internal/settle ./internal/thaw ./limit ./localstack ./localstack/cmd/localaws ./localstack/mem... ./localstack/runtimeapi ./status
.PHONY: race
race: ## Run the tests of the packages that have goroutines of their own with the race detector, without emulators, with a fifth of the draws
	EMULATORS=off go test -race -short -vet=off -timeout 30m -skip "^Test(Process|Killed|RedriveProperties|Soak|OutageIsNoStorm|OwnOutage|ManyClaims|SlowDeletesDoNotBoundThroughput|SQSIsAwayForAnHour|HotGroupsDelayNoOther|Throughput|.*Sees$$)" $(ARGS) $(or $(PKG),$(RACED))

.PHONY: bench
bench: ## Measure sqsonce, the raw SDK and the peers on the same work (ARGS='-quick -scenario worker'; -pages .. writes RESULTS.md; Node peers need npm)
	cd bench && go run . $(ARGS)

.PHONY: bench-stores
bench-stores: ## Measure all stores at 1, 16 and 64 handlers (ARGS='-benchtime 2000x'; databases: make emulators)
	cd bench && go test -run '^$$' -bench . -benchtime 1000x -timeout 30m $(ARGS) ./stores

# Each part with the time that it takes.
SOAKS = simulation storms operators outbox worker fleet kills attacks schedules local
.PHONY: soak $(SOAKS:%=soak-%)
soak: ## Run the long tests, over seven hours (PART='simulation storms operators outbox worker fleet kills attacks schedules local')
	@set -e; for p in $(or $(PART),$(SOAKS)); do $(MAKE) --no-print-directory soak-$$p; done

soak-simulation: # 100 min: 100,000 invocations of functions and a million deliveries to fleets, in virtual time
	@mkdir -p $(BIN); SOAK=1 go test ./internal/hosttest -run '^Test(Simulation|Fleet)$$' -count 1 -timeout 120m -v >$(BIN)/soak.log; \
		status=$$?; grep -v '^=== \|^ *--- PASS' $(BIN)/soak.log; exit $$status

soak-storms: # 20 min: calls of the function, the publisher and its forwards, with faults
	SOAK=1 go test ./lambda -run '^TestStorm$$' -count 1 -timeout 20m
	go test ./fifo -run '^Test(Storm|ForwardStorm|TransientFaults|LastingFaults)$$' -rapid.checks 20000 -count 1 -timeout 20m

soak-operators: # 60 min: 20,000 dead-letter queues, lists of 100,000 messages, metrics of 100,000 messages
	go test ./internal/ops -run '^TestRedriveProperties$$' -rapid.checks 20000 -count 1 -timeout 60m
	cd cmd/sqsonce && SOAK=1 go test ./cli -run '^Test(Console|List)Load$$' -count=1 -timeout 30m -v
	cd otelsqs && SOAK=1 go test -run '^TestCardinality$$' -count 1 -timeout 10m

soak-outbox: # 60 min: 60 million states of the protocol, a million events of each outbox
	SOAK=1 go test ./internal/outboxmodel -run '^TestRuns$$' -count 1 -timeout 30m
	SOAK=1 go test ./fifo/outbox ./fifo/outbox/dynamooutbox -run '^Test(EverythingAtOnce|Storm)$$' -count 1 -timeout 120m -v
	cd dedup/sqlstore && SOAK=1 go test ./sqloutbox -run '^Test(Storm|NoLateEvents)$$' -count 1 -timeout 180m -v

soak-worker: # 15 min: two million messages, a million tenants of a limit
	SOAK=1 go test ./sqsworker -run '^TestSoak$$' -count 1 -timeout 60m -v
	SOAK=1 go test ./limit -run '^TestMemoryOfManyKeys$$' -count 1 -v

soak-fleet: # 40 min: eight runs of everything in processes, with two minutes of faults (SEED in the environment repeats one)
	SOAK=1 go test ./internal/proof/fleet -count 1 -timeout 120m -v

soak-kills: # 60 min: 3,000 kills at an outbox on each database
	cd dedup/sqlstore && KILLS=3000 go test ./sqloutbox/killtest -run '^TestKill$$' -count 1 -timeout 180m -v

soak-attacks: # 30 min: hosts in one process and in several on each store, three minutes each, with kills, and each fault of a server
	SOAK=1 go test ./dedup/dynamostore/killtest -run '^TestAttack(InMemory|OnDynoxide|SeesDefects)$$' -count 1 -timeout 60m -v
	cd dedup/redisstore && SOAK=1 go test -run '^Test(Attack|CounterUnderKills)$$' -count 1 -timeout 60m -v
	cd dedup/sqlstore && SOAK=1 go test -run '^Test(Attack|CounterUnderKills|DeferredUnderAttack|ClaimUnderInserts)$$' -count 1 -timeout 60m -v

soak-schedules: # 20 min: every order of the calls of some owners
	SOAK=1 go test ./dedup/dynamostore -run '^TestSchedules$$' -count 1 -timeout 120m -v

soak-local: # 10 min: localaws with a million messages, a table of 1 GB and a million calls; pages of a million items
	SOAK=1 go test ./localstack/memdynamodb -run '^TestPages$$' -count 1 -timeout 20m -v
	cd localstack/cmd/localaws && SOAK=1 go test -run '^TestLoad$$' -count 1 -timeout 60m -v

# By count, not by time: go test -fuzz sometimes fails when its time is over.
.PHONY: fuzz
fuzz: ## Run every fuzz target 200,000 times: 6 minutes
	@set -e; for p in $$(go list ./... ./s3payload/... ./otelsqs/...); do \
		for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz' || true); do go test -run '^$$' -fuzz "^$$f$$" -fuzztime 200000x $$p; done; \
	done

.PHONY: lint
lint: ## Check gofmt, vet, staticcheck, go.mod and go.sum of every module, and the CI workflow (downloads staticcheck and actionlint)
	@out=$$(gofmt -l .); if [ -n "$$out" ]; then echo "not gofmt'd:"; echo "$$out"; exit 1; fi
	go vet $(MODULES:%=%/...)
	go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 $(MODULES:%=%/...)
	@set -e; for m in $(MODULES); do \
		echo "go.mod and go.sum of $$m"; \
		(cd $$m && go mod tidy -diff && GOWORK=off go list -export ./... >/dev/null); \
	done
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 -shellcheck= -pyflakes=
	$(MAKE) --no-print-directory words

.PHONY: pictures
pictures: ## Write docs/images/demo.svg and top.svg from the output of make demo and sqsonce top (needs script of util-linux)
	internal/site/pictures.sh

.PHONY: words
words: ## Count signs of hard English in README, docs/ and doc comments, and print the worst passages; ARGS=FILES for some
	go run ./internal/words $(ARGS)

.PHONY: release
release: lint ## Check that VERSION=v0.x.y can be released and prepare the go.mod files for it (downloads apidiff); commits, tags and pushes nothing
	internal/release/release.sh '$(VERSION)'

.PHONY: archives
archives: ## Build the archives of a release from this tree into bin/archives, as the workflow does, without the upload; 20 minutes (TARGETS='linux/amd64 windows/arm64', with this system: its programs are run)
	cd internal/release && ARCHIVES=$(BIN)/archives TARGETS="$(TARGETS)" go test -count=1 -timeout 60m -v -run '^TestInstall$$/^programs$$' .

.PHONY: licences
licences: ## Write THIRD_PARTY_LICENSES.md (downloads go-licenses)
	internal/release/licences.sh

.PHONY: cover
cover: ## Write cover.out and print the coverage of each package
	go test -coverprofile cover.out -coverpkg ./... ./... && go tool cover -func cover.out | tail -1

.PHONY: build
build: build-OrdersFunction ## Build the commands, and the Lambda function's bootstrap for arm64, into bin/
	go build -trimpath -o $(BIN)/ ./localstack/cmd/localaws
	cd examples && go build -trimpath -o $(BIN)/ ./orders/...

.PHONY: cli
cli: ## Build the operators' command sqsonce into bin/; sqsonce-full (with the drivers of SQL and Redis): make cli CLI=sqsonce-full
	cd cmd/$(or $(CLI),sqsonce) && go build -o $(BIN)/ .

# sam build calls these targets: one for each function of template.yaml.
ARTIFACTS_DIR ?= $(BIN)
.PHONY: build-OrdersFunction build-OrdersFifoFunction
build-OrdersFunction build-OrdersFifoFunction:
	cd examples && CGO_ENABLED=0 GOOS=linux GOARCH=arm64 \
		go build -tags lambda.norpc -trimpath -ldflags '-s -w' -o $(ARTIFACTS_DIR)/bootstrap ./orders/lambda

build-OutboxRelayFunction:
	cd examples && CGO_ENABLED=0 GOOS=linux GOARCH=arm64 \
		go build -tags lambda.norpc -trimpath -ldflags '-s -w' -o $(ARTIFACTS_DIR)/bootstrap ./orders/outboxrelay

.PHONY: template
template: ## Check and build template.yaml with cfn-lint and SAM, and check deploy/ (needs Python; prints SKIP where they cannot be installed)
	.ci/template

.PHONY: site
site: ## Make a site of docs in bin/site, and fail on a broken link or a page that is in no menu (installs mkdocs-material; needs Python 3.12)
	go run ./internal/site -out $(BIN)/site

REALAWS = @mkdir -p $(BIN); cd localstack/internal/realaws && go build -o $(BIN)/realaws . && exec $(BIN)/realaws
.PHONY: aws aws-clean
aws: ## Run the suites, both hosts and the demo on AWS itself, in an account without anything else: costs money, asks first (SQSONCE_AWS_ACCOUNT=... AWS_REGION=..., see AWS.md; YES=1 ARGS='-run TestSQS')
	$(REALAWS) -report $(BIN)/aws-report.txt $(ARGS)

aws-clean: ## Delete everything with the prefix sqsonce-aws- in the account, after a question (SQSONCE_AWS_ACCOUNT=... AWS_REGION=...)
	$(REALAWS) -clean $(ARGS)

.PHONY: clean
clean: ## Remove the files that the other targets write
	rm -rf $(BIN) cover.out
