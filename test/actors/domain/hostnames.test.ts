/** One rule for names of hosts: what a credential may be stored for, egress may call. */
import test from 'ava'
import { normalizeHostname } from '../../../actors/domain/hostnames.js'
import { judgeTarget } from '../../../actors/platform/outbound-http/targets.js'

const PUBLIC_ONLY = { nonStandardPorts: false, privateNetworks: false }

const NAMES: readonly (readonly [string, string])[] = [
  ['API.Example.com.', 'api.example.com'],
  ['under_score.example.com', 'under_score.example.com'],
  ['_edge.a_b.example.com', '_edge.a_b.example.com'],
  ['bücher.example', 'xn--bcher-kva.example'],
  [`${'a'.repeat(63)}.example`, `${'a'.repeat(63)}.example`],
]
const NO_NAMES: readonly string[] = [
  '-dash.example.com',
  'dash-.example.com',
  'a..example.com',
  `${'a'.repeat(64)}.example`,
  `${'a.'.repeat(126)}example`,
  'example.123',
  'example.0x1f',
  '127.1',
]

for (const [typed, kept] of NAMES) {
  test(`${typed} is kept as ${kept}, and called`, (t) => {
    t.is(normalizeHostname(typed), kept)
    const verdict = judgeTarget(`https://${kept}/`, PUBLIC_ONLY)
    t.is(verdict.tag === 'target' ? verdict.url.hostname : verdict.fault, kept)
  })
}

for (const typed of NO_NAMES) {
  test(`${typed} is neither kept nor called`, (t) => {
    t.is(normalizeHostname(typed), null)
    t.is(judgeTarget(`https://${typed}/`, PUBLIC_ONLY).tag, 'refused')
  })
}
