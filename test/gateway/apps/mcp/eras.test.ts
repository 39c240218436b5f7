/** Which protocol era a message belongs to, as a table. */
import test from 'ava'
import { eraOf, type McpHeaders, refuseVersion } from '../../../../gateway/apps/mcp/eras.js'

const MODERN = '2026-07-28'
const meta = (version: unknown) => ({
  _meta: {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientCapabilities': {},
  },
})
const headers = (version?: string, method?: string, name?: string): McpHeaders => ({
  'mcp-protocol-version': version,
  'mcp-method': method,
  'mcp-name': name,
})
const base64 = (text: string) => `=?base64?${Buffer.from(text).toString('base64')}?=`

type Row = readonly [
  what: string,
  kind: 'request' | 'notification',
  method: string,
  params: Record<string, unknown> | undefined,
  headers: McpHeaders,
  expected: string | number,
]
// biome-ignore format: a table
const ROWS: readonly Row[] = [
  ['no header',                 'request', 'ping', undefined, headers(), '2025-03-26'],
  ['header 2025-03-26',         'request', 'ping', {}, headers('2025-03-26'), '2025-03-26'],
  ['header 2025-11-25',         'request', 'ping', {}, headers('2025-11-25'), '2025-11-25'],
  ['legacy, other _meta',       'request', 'ping', { _meta: { progressToken: 1 } }, headers('2025-11-25'), '2025-11-25'],
  ['legacy, same claim',        'request', 'ping', meta('2025-11-25'), headers('2025-11-25'), '2025-11-25'],
  ['legacy, modern claim',      'request', 'ping', meta(MODERN), headers('2025-11-25'), -32020],
  ['no header, modern claim',   'request', 'ping', meta(MODERN), headers(), -32020],
  ['legacy headers are free',   'request', 'ping', {}, headers('2025-11-25', 'other', 'other'), '2025-11-25'],
  ['modern',                    'request', 'x', meta(MODERN), headers(MODERN, 'x'), 'modern'],
  ['modern, no params',         'request', 'x', undefined, headers(MODERN, 'x'), -32602],
  ['modern, no claim',          'request', 'x', meta(undefined), headers(MODERN, 'x'), -32602],
  ['modern, legacy claim',      'request', 'x', meta('2025-11-25'), headers(MODERN, 'x'), -32020],
  ['modern, other method',      'request', 'x', meta(MODERN), headers(MODERN, 'X'), -32020],
  ['modern, no method header',  'request', 'x', meta(MODERN), headers(MODERN), -32020],
  ['modern, free name header',  'request', 'x', meta(MODERN), headers(MODERN, 'x', 'y'), 'modern'],
  ['call with its name',        'request', 'tools/call', { ...meta(MODERN), name: 'a' }, headers(MODERN, 'tools/call', 'a'), 'modern'],
  ['call, encoded name',        'request', 'tools/call', { ...meta(MODERN), name: 'ä' }, headers(MODERN, 'tools/call', base64('ä')), 'modern'],
  ['call, other encoded name',  'request', 'tools/call', { ...meta(MODERN), name: 'ä' }, headers(MODERN, 'tools/call', base64('a')), -32020],
  ['call, no name header',      'request', 'tools/call', { ...meta(MODERN), name: 'a' }, headers(MODERN, 'tools/call'), -32020],
  ['call, no name at all',      'request', 'tools/call', meta(MODERN), headers(MODERN, 'tools/call'), 'modern'],
  ['modern notification',       'notification', 'x', undefined, headers(MODERN), 'modern'],
  ['notification, wrong header','notification', 'x', {}, headers(MODERN, 'y'), -32020],
  ['notification, wrong claim', 'notification', 'x', meta('2025-11-25'), headers(MODERN), -32020],
]

for (const [what, kind, method, params, given, expected] of ROWS) {
  test(`era: ${what}`, (t) => {
    t.is(refuseVersion(given), undefined)
    const message = kind === 'request' ? { kind, id: 1, method, params } : { kind, method, params }
    const era = eraOf(message as Parameters<typeof eraOf>[0], given)
    const found = era.tag === 'refused' ? era.code : era.tag === 'legacy' ? era.version : era.tag
    t.is<string | number, string | number>(found, expected)
  })
}

test('other version headers are refused', (t) => {
  for (const version of ['', '2024-11-05', '2026-07-29', ' 2025-11-25', `${MODERN}, ${MODERN}`]) {
    t.like(refuseVersion(headers(version)), { code: -32022, data: { requested: version } })
  }
})
