/** Why a breached-password check failed, as reasons for the log. */
import { readFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import test from 'ava'
import { openBreaches } from '../../../../actors/identity/passwords/breaches.js'
import { makeCertificate } from '../../../support/service/certificates.js'

const certificate = makeCertificate()
let answer: RequestListener
const server = createServer(
  { key: readFileSync(certificate.keyPath), cert: readFileSync(certificate.certPath) },
  (request, response) => answer(request, response),
)
test.before(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
test.after.always(() => {
  server.closeAllConnections()
  server.close()
  certificate.remove()
})

/** The failure reasons that `check` reports for a password at this URL. */
async function failuresAt(url: string, privateNetworks = true): Promise<[string, ...string[]]> {
  const breaches = openBreaches({
    url,
    settings: {
      egress_allow_private_networks: privateNetworks,
      egress_allow_non_standard_ports: true,
      egress_ca_pem_path: certificate.certPath,
      egress_dns_overrides: {},
      own_names: [],
    },
  })
  const reasons: string[] = []
  try {
    const password = new TextEncoder().encode('password')
    const verdict = await breaches.check(password, (reason) => reasons.push(reason))
    return [verdict, ...reasons]
  } finally {
    await breaches.close()
  }
}
/** Retries if a loaded machine responds too late. */
async function failuresInTime(url: string, expected?: string) {
  const tries = expected === 'timeout' ? 1 : 20
  let told = await failuresAt(url)
  for (let n = 1; n < tries && told[1] === 'timeout'; n += 1) told = await failuresAt(url)
  return told
}
const here = () => `https://localhost:${(server.address() as AddressInfo).port}`

for (const [what, listener, reason] of [
  ['stalls', () => undefined, 'timeout'],
  ['fails', (_, response) => response.writeHead(500).end(), 'status_500'],
  [
    'sends elsewhere',
    (_, response) => response.writeHead(302, { location: '/' }).end(),
    'status_302',
  ],
  ['babbles', (_, response) => response.end('<html>'), 'no_list_of_hashes'],
  ['does not end', (_, response) => response.end('0'.repeat(200_000)), 'too_long'],
] as const satisfies readonly (readonly [string, RequestListener, string])[]) {
  test.serial(`a range service that ${what}: ${reason}`, async (t) => {
    answer = listener
    t.deepEqual(await failuresInTime(here(), reason), ['unknown', reason])
  })
}

test.serial('an unreachable or forbidden service', async (t) => {
  t.deepEqual(await failuresInTime('https://localhost:1'), ['unknown', 'connection_refused'])
  t.deepEqual(await failuresAt('https://127.0.0.1:1', false), ['unknown', 'address_refused'])
})

test.serial('a verdict reports no failure', async (t) => {
  answer = (_, response) => response.end(`${'0'.repeat(35)}:0`)
  t.deepEqual(await failuresInTime(here()), ['clean'])
})
