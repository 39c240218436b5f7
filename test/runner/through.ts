/** Which flows run through a proxy against several processes, and why the others do not. */
import { readFileSync } from 'node:fs'

/** What in the source of a flow needs a service in the process of the test. */
const NEEDS: readonly (readonly [pattern: RegExp, reason: string])[] = [
  [/\bclock[,:]|heldClock|held-clock|steppedClock/, 'it holds the clock of the service'],
  [/\bbeside[,:]|twoServices|otherNode/, 'it starts a second service on the same database'],
  [/in its process\b/, 'it asserts what one process does before the others'],
  [/\bonLog\b|output\(\)/, 'it reads the log of the service'],
  [/\btransport[,:]|TRANSPORTS|plain_http|DEFAULT_TRANSPORT/, 'it chooses the transport'],
  [/\.service\.|startService|system\.ref/, 'it calls the service directly'],
  [/\bkms\.|openKms/, 'it stops the kms'],
  [/svc\(t|separateService|spawn\(|program\(|testWithProgram/, 'it starts processes of its own'],
  [/dev\/mail|devMail/, 'the mail page is served by a process of all planes'],
  [/docsPage\(/, 'the programs of its page trust no certificate of a test'],
  [/chromium/i, 'its browser trusts no certificate of a test'],
  [/relayTo|ownPostgres/, 'it stops the database'],
  [/SVC_SERVER__|SVC_RUNTIME_PLANE|SVC_OIDC__ISSUER_URL/, 'it changes the listener'],
]

const EXCEPTIONS: Readonly<Record<string, string>> = {
  'agents/removed-scopes': 'it asserts at once what the other processes know within a second',
  'commerce/x402-monitor': 'it asserts the readiness of one process',
  'identity/federated-login/federated-login': 'it chooses the transport',
  'identity/sign-in/own-factors': 'it starts a second service on the same database',
}

/** Undefined where a flow runs through a proxy. @param file compiled, below dist/test. */
export function reasonNotThrough(file: string): string | undefined {
  if (!file.includes('/flows/')) return 'it is not a flow over HTTP'
  const source = readFileSync(file.replace(/^dist\//, '').replace(/\.js$/, '.ts'), 'utf8')
  if (!/\/support\//.test(source)) return 'it starts no service'
  const exception = Object.keys(EXCEPTIONS).find((name) => file.endsWith(`/${name}.test.js`))
  if (exception !== undefined) return EXCEPTIONS[exception]
  return NEEDS.find(([pattern]) => pattern.test(source))?.[1]
}

/** The flows of `npm test` that run behind nginx too: pages, tokens and administration, each with both planes. */
export const THROUGH_FLOWS: readonly string[] = [
  'oauth/authorization/code',
  'identity/organizations/user-owners',
].map((name) => `dist/test/flows/${name}.test.js`)
