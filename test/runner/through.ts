/** Which flows run through a proxy against several processes, and why the others do not. */
import { readFileSync } from 'node:fs'

/** What in the source of a flow needs a service in the process of the test. */
const NEEDS: readonly (readonly [pattern: RegExp, reason: string])[] = [
  [/\bclock[,:]|heldClock|held-clock|steppedClock/, 'it holds the clock of the service'],
  [/\bbeside[,:]/, 'it starts a second service on the same database'],
  [/\bonLog\b|output\(\)/, 'it reads the log of the service'],
  [/\btransport[,:]|TRANSPORTS|plain_http|DEFAULT_TRANSPORT/, 'it chooses the transport'],
  [/\.service\.|startService|system\.ref/, 'it calls the service directly'],
  [/\bkms\.|openKms/, 'it stops the kms'],
  [/svc\(t|separateService|spawn\(|program\(|testWithProgram/, 'it starts processes of its own'],
  [/dev\/mail|devMail/, 'the mail page is served by a process of all planes'],
  [/chromium|browser\.js/i, 'its browser trusts no certificate of a test'],
  [/relayTo|ownPostgres/, 'it stops the database'],
  [/SVC_SERVER__|SVC_RUNTIME_PLANE|SVC_OIDC__ISSUER_URL/, 'it changes the listener'],
]

/** Undefined where a flow runs through a proxy. @param file compiled, below dist/test. */
export function reasonNotThrough(file: string): string | undefined {
  if (!file.includes('/flows/')) return 'it is not a flow over HTTP'
  const source = readFileSync(file.replace(/^dist\//, '').replace(/\.js$/, '.ts'), 'utf8')
  if (!/testService\(|apiOf\(|workspaceOf\(|House\(|Shop\(|startFleet\(/.test(source)) {
    return 'it asks no service of its own'
  }
  return NEEDS.find(([pattern]) => pattern.test(source))?.[1]
}

/** The flows of `npm test`, behind nginx: every area that a plane of its own serves, and the workers. */
export const THROUGH_FLOWS: readonly string[] = [
  'identity/organizations/control-plane',
  'agents/agent-management',
  'oauth/authorization/openid-client',
].map((name) => `dist/test/flows/${name}.test.js`)
