/**
 * What integrators and operators expect of an identity service, and the test that shows each. `lacks` says what no test
 * shows.
 */
import { existsSync, readFileSync } from 'node:fs'
import test from 'ava'

type Shown = readonly [file: string, title: string]
type Row = {
  readonly what: string
  readonly shown: readonly Shown[]
  readonly lacks?: string
}

const FIRST_HOUR: readonly Row[] = [
  {
    what: 'a Compose file that works unedited',
    shown: [
      ['deploy/compose', 'the file fits the Compose specification'],
      ['deploy/compose', 'the service accepts its settings'],
      ['deploy/image.long', 'the image runs on a read-only root as another user'],
    ],
    lacks: 'no test has a Docker daemon, so none starts all containers of the file',
  },
  {
    what: 'one command prints URL, administrator, client and a curl that works',
    shown: [
      [
        'flows/operations/commands/init',
        'it prints address, administrator, test login, client and a curl, and all of it works',
      ],
      ['flows/operations/start', 'what a start prints as next steps works as it is printed'],
    ],
  },
  {
    what: 'headless bootstrap',
    shown: [
      [
        'flows/agents/agent-client',
        'an agent creates a workspace, gets a delegation, and renews its tokens',
      ],
      ['flows/operations/commands/init', 'a second run creates nothing and prints the same'],
    ],
  },
  {
    what: 'the first administrator is temporary and recoverable',
    shown: [
      [
        'flows/identity/sign-in/hosted-pages',
        'an invite creates one operator, once, who owns the organization and its tenant',
      ],
      [
        'flows/operations/recover',
        'an owner without password and second factor gets in by a link that works once',
      ],
    ],
  },
  {
    what: 'a refused start lists all failures at once, with exit code 78',
    shown: [
      ['flows/operations/start', 'a refused configuration lists every failure and starts nothing'],
      ['runtime/kernel/config/print', 'failures are printed with value, source, rule and fix'],
    ],
  },
  {
    what: 'public URL and proxy settings are checked',
    shown: [
      ['runtime/cli/doctor', 'a proxy that rewrites Host, and one that is not trusted'],
      ['flows/operations/production/proxies.long', 'a deployment is what it is without'],
    ],
  },
  {
    what: 'sample applications',
    shown: [
      [
        'flows/operations/examples/node-examples.long',
        'the Express API accepts tokens for itself and authentic webhooks',
      ],
      [
        'flows/operations/examples/single-page-application-chromium.long',
        'the single-page application signs a person in',
      ],
      ['flows/operations/examples/other-languages.long', 'the Python client is an agent'],
      ['flows/operations/examples/other-languages.long', 'the Go API accepts tokens for itself'],
    ],
  },
  {
    what: 'health checks that fit Kubernetes',
    shown: [
      ['flows/operations/planes', 'every plane serves probes and its own routes only'],
      ['gateway/lifecycle', 'until the service has started only probes are answered'],
    ],
  },
]

const EVERY_DAY: readonly Row[] = [
  {
    what: 'an interactive API page from the running service',
    shown: [
      [
        'gateway/pages/reference-page-chromium.long',
        'the page of the API is accessible and sends requests',
      ],
      [
        'contract/generated-client.long',
        'a generated TypeScript client compiles and creates an application',
      ],
    ],
  },
  {
    what: 'OAuth errors that say which check failed',
    shown: [['contract/problems', '${status} ${code}: ${when}']],
  },
  {
    what: 'what happened to a request',
    shown: [
      [
        'flows/operations/tracing',
        'svc trace: log, audit, egress and webhook attempts in order of time',
      ],
    ],
  },
  {
    what: 'secrets are never logged',
    shown: [['faults/operations/leaks.long', 'no planted secret appears in any output']],
  },
  {
    what: 'the command line covers the API, with --json',
    shown: [['flows/operations/api-command', 'operations are listed, and called by their names']],
  },
  {
    what: 'webhooks are listened to, and forwarded to localhost',
    shown: [
      [
        'flows/webhooks/webhook-listen',
        'events committed after the start arrive in order, signed like any delivery',
      ],
      [
        'flows/webhooks/webhook-listen',
        'the secret stays the same, filters apply, and a failing receiver is reported',
      ],
    ],
  },
  {
    what: 'replay, recovery since a time, history of attempts',
    shown: [
      [
        'flows/webhooks/webhooks',
        'a finished delivery is replayed under its id, and recovery sends missed events',
      ],
      [
        'flows/webhooks/webhooks',
        'svc webhooks recover sends what a receiver missed, of every active subscription',
      ],
      ['flows/webhooks/webhooks', 'the history is paged and filtered'],
    ],
  },
  {
    what: 'a secret is rotated without a lost delivery',
    shown: [
      [
        'flows/webhooks/webhook-receivers',
        'while two secrets overlap a stock receiver verifies with either, our suite with the new',
      ],
    ],
  },
  {
    what: 'verifiers in eight languages',
    shown: [
      ['receivers/receivers', 'the receiver in TypeScript agrees with the table'],
      ['receivers/receivers.long', 'the receiver in Python agrees with the table'],
      ['receivers/receivers.long', 'the receiver in Go agrees with the table'],
      ['receivers/receivers.long', 'the receiver in Ruby agrees with the table'],
      ['receivers/receivers.long', 'the receiver in PHP agrees with the table'],
      ['receivers/receivers.long', 'the receiver in Java agrees with the table'],
      ['receivers/receivers.long', 'the receiver in C# agrees with the table'],
      ['receivers/receivers.long', 'the receiver in shell agrees with the table'],
    ],
  },
  {
    what: 'a catalogue of events with schemas and examples',
    shown: [
      [
        'flows/webhooks/events',
        'OpenAPI describes every type of the catalogue, with a valid example',
      ],
      ['flows/webhooks/events', 'a running service sends every type of the catalogue as published'],
    ],
  },
  {
    what: 'deprecation signals, and no published member disappears',
    shown: [
      ['gateway/answers', 'a defect is a 500 problem that tells nothing of itself'],
      ['contract/published', 'no published operation, status or member has disappeared'],
    ],
  },
  {
    what: 'clients and helpers',
    shown: [
      ['contract/generated-types.long', 'generated Python types compile and read an answer'],
      ['contract/generated-types.long', 'generated Go types compile and read an answer'],
      ['runtime/packages/client-package', 'TypeScript programs compile against it'],
      ['flows/operations/examples/other-languages.long', 'the Python client is an agent'],
    ],
  },
  {
    what: 'MCP clients work',
    shown: [
      [
        'flows/oauth/mcp/mcp-clients',
        'finds the path form, registers itself, gets a token and refreshes it',
      ],
    ],
  },
  {
    what: 'SCIM from Okta and Entra ID',
    shown: [
      ['flows/identity/scim/patch', 'Okta deactivates a user with a value without a path'],
      ['flows/identity/scim/patch', 'Entra deactivates a user with a string'],
    ],
    lacks:
      'the requests are written from the documents of both, not recorded there, and their pages have no pictures',
  },
]

const OPERATORS: readonly Row[] = [
  {
    what: 'dashboards, alerts and run-books',
    shown: [
      ['deploy/dashboards', 'there are at least 10 alerts, and each has its run-book'],
      ['deploy/dashboards', 'a running service has every metric, with the labels that are used'],
    ],
  },
  {
    what: 'a Helm chart',
    shown: [['deploy/helm.long', 'renders to valid objects']],
    lacks: 'no test has a cluster',
  },
  {
    what: 'a sizing page with figures of our own benches',
    shown: [['conformance/expectations', 'the benches of the sizing page exist']],
  },
  {
    what: 'migrations are a step of their own, and a start that is behind names the gap',
    shown: [
      ['migrations/main', 'the service refuses a database that is behind and names what it lacks'],
    ],
  },
  {
    what: 'backup, restore and the loss of keys',
    shown: [
      [
        'faults/operations/backup.long',
        'a deployment is backed up under load, destroyed, restored and used',
      ],
      [
        'faults/operations/backup.long',
        'a damaged backup, or one without its keys, changes nothing',
      ],
    ],
  },
  {
    what: 'an audit log that is chained and exported',
    shown: [
      ['flows/operations/audit', 'events are filtered and listed page by page'],
      ['flows/operations/audit', 'an export is checked offline, in whole or in part'],
    ],
  },
  {
    what: 'declarative files',
    shown: [
      [
        'flows/operations/commands/apply',
        'the example file is planned, applied once, and then changes nothing',
      ],
      ['flows/operations/commands/apply', 'drift is shown and corrected, and other members stay'],
    ],
  },
  {
    what: 'upgrade notes by version',
    shown: [
      ['runtime/packages/version', 'the newest version of the changelog is that of the package'],
      ['runtime/packages/version', 'every version of the changelog has upgrade notes'],
    ],
  },
  {
    what: 'a small image and a bill of materials',
    shown: [
      [
        'deploy/image.long',
        'the image has every file that the service reads besides compiled code',
      ],
      ['deploy/sbom.long', 'the software bill of materials lists the packages of production'],
    ],
    lacks: 'images are not signed: there is no registry that they are published to',
  },
]

const HOSTED_PAGES: readonly Row[] = [
  {
    what: 'pages work without script',
    shown: [
      [
        'flows/operations/console/chromium.long',
        'an application is created by keyboard alone, without script',
      ],
      ['flows/identity/pages/controls-chromium.long', 'without a script the controls are hidden'],
      [
        'flows/oauth/authorization/code',
        'a user signs in and consents once, and the application gets the requested grant',
      ],
    ],
  },
  {
    what: 'dark and light, colour, logo and texts of a tenant',
    shown: [
      [
        'gateway/pages/style',
        'whatever colour a tenant has, words in it and on it can be read in both schemes',
      ],
      ['flows/identity/sign-in/hosted-pages', 'branding is applied, and cannot inject anything'],
    ],
  },
  {
    what: 'accessibility',
    shown: [
      [
        'flows/identity/gallery-chromium.long',
        'every page is accessible: ${colorScheme}, ${locale}',
      ],
    ],
  },
  {
    what: 'eight languages, right-to-left, plural forms',
    shown: [
      ['gateway/pages/language', 'the keys are those of English, and every text is complete'],
      ['gateway/pages/language', 'a count chooses the plural form and is formatted'],
    ],
  },
  {
    what: 'a consent that people understand',
    shown: [
      ['gateway/pages/scopes', 'every scope has words of its own for the consent page'],
      [
        'flows/oauth/tokens/api-resources',
        'the consent page shows the resource and marks new scopes',
      ],
    ],
  },
  {
    what: 'security headers',
    shown: [['gateway/answers', 'a page has the strict content security policy']],
  },
  {
    what: 'error pages with a way back',
    shown: [
      [
        'flows/identity/sign-in/hosted-pages',
        'an expired sign-in leads to the sign-in page of the same tenant',
      ],
      ['flows/identity/sign-in/hosted-pages', 'opening a form-only address shows a message'],
    ],
  },
  {
    what: 'password managers and passkeys',
    shown: [
      [
        'flows/identity/sign-in/chromium',
        'a passkey is offered by autofill, and works as second factor after a password',
      ],
      ['flows/identity/home-page', 'password managers find the page to change the password'],
    ],
  },
]

const BETTER: readonly Row[] = [
  {
    what: 'agents start alone and a person adopts them later',
    shown: [
      [
        'flows/agents/agent-client',
        'an agent creates a workspace, gets a delegation, and renews its tokens',
      ],
      [
        'flows/agents/whole-journey',
        'the whole journey of agents and people, with its audit trail',
      ],
    ],
  },
  {
    what: 'secrets that agents use and cannot read, with a budget for each grant',
    shown: [
      ['flows/vault/egress-limits', 'of 12 concurrent calls a grant for 5 allows 5'],
      ['flows/vault/egress-limits', 'events contain only host and method of a call'],
    ],
    lacks: 'calls are seen in the audit log and in svc trace, not live',
  },
  {
    what: 'doctor and trace',
    shown: [
      ['runtime/cli/doctor', 'a healthy deployment has no failure, and every check is there'],
      [
        'flows/operations/tracing',
        'svc trace: log, audit, egress and webhook attempts in order of time',
      ],
    ],
  },
  {
    what: 'a kit for webhooks: vectors, verifier, forwarder, recovery',
    shown: [
      ['vectors/webhook', 'the published delivery has the published signature'],
      ['runtime/cli/webhooks', 'verify accepts what trigger sends'],
    ],
  },
  {
    what: 'published results of crash, SSRF, smuggling and conformance tests',
    shown: [['conformance/page', 'every test that docs/${name}.md names exists']],
  },
  {
    what: 'every effective setting with its source, secrets masked',
    shown: [
      ['runtime/cli/config', 'config show prints every value with its source'],
      [
        'flows/operations/start',
        'a first start prints its address, and a second one keeps the data',
      ],
    ],
  },
]

const GROUPS: readonly (readonly [name: string, count: number, rows: readonly Row[]])[] = [
  ['the first hour', 8, FIRST_HOUR],
  ['every day', 14, EVERY_DAY],
  ['operators', 9, OPERATORS],
  ['hosted pages', 8, HOSTED_PAGES],
  ['beyond other projects', 6, BETTER],
]

for (const [name, count, rows] of GROUPS) {
  test(`every expectation has a test that exists: ${name}`, (t) => {
    t.is(rows.length, count)
    const missing = rows
      .flatMap(({ shown }) => shown)
      .filter(([file, title]) => !exists(file, title))
    t.deepEqual(missing, [])
    t.deepEqual(
      rows.filter(({ shown }) => shown.length === 0),
      [],
    )
  })
}

function exists(file: string, title: string): boolean {
  const path = `test/${file}.test.ts`
  return existsSync(path) && readFileSync(path, 'utf8').replaceAll("\\'", "'").includes(title)
}

test('the benches of the sizing page exist', (t) => {
  const page = readFileSync('docs/guides/operations/sizing.md', 'utf8')
  const names = [...page.matchAll(/\| `([a-z0-9/-]+)` \|$/gm)].map(([, name]) => name!)
  t.true(names.length >= 5)
  t.deepEqual(
    names.filter((name) => !existsSync(`bench/${name}.ts`)),
    [],
  )
})
