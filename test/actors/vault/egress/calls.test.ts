/** One call: its header fields, its events, what it gives up, and how long a process knows its caller. */
import test from 'ava'
import {
  responseHeaders,
  sanitizedHeaders,
  withCredential,
} from '../../../../actors/vault/egress/relay/headers.js'
import {
  createRedactor,
  SecretEncodings,
} from '../../../../actors/vault/egress/redact/redaction.js'
import type {
  HeaderPair,
  ProxyRequest,
  RelayReport,
} from '../../../../actors/vault/egress/protocol.js'
import {
  type CallFacts,
  CallTemplates,
  beginEvent,
  credentialAccessed,
  endEvent,
  streamClosed,
} from '../../../../actors/vault/egress/admission/events.js'
import { eventText } from '../../../../storage/platform/event-text.js'
import { canonicalJson } from '../../../../storage/operations/audit-chain.js'
import { readAuthScheme } from '../../../../actors/domain/vault/egress.js'
import { packPrincipal } from '../../../../actors/domain/packed-principal.js'
import type { Principal } from '../../../../actors/domain/principal.js'
import { HeldBytes, createEgressShares } from '../../../../actors/vault/egress/admission/shares.js'
import { type ProxyNeeds, createProxy } from '../../../../actors/vault/egress/proxy.js'
import { FairShare } from '../../../../runtime/kernel/fairness/fair-share.js'
import { NOTHING } from '../../../../actors/vault/egress/admission/batch.js'
import { Block, type BlockLimits } from '../../../../actors/vault/egress/admission/block.js'
import {
  type KnownCaller,
  KnownCallers,
} from '../../../../actors/vault/egress/admission/known-callers.js'

/** The caller's fields for the upstream, followed by the field of the credential. */
function requestHeaders(sent: readonly HeaderPair[], injected: HeaderPair | null) {
  const sanitized = sanitizedHeaders(sent)
  if (sanitized.tag === 'refused' || injected === null) return sanitized
  return withCredential(sent, sanitized.headers, injected)
}

const AUTHORIZATION: HeaderPair = ['Authorization', 'Bearer the-secret']

for (const name of [
  'Host',
  'Content-Length',
  'Connection',
  'Keep-Alive',
  'Proxy-Authorization',
  'Proxy-Connection',
  'TE',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
  'Expect',
  'Forwarded',
  'X-Forwarded-For',
  'X-Forwarded-Host',
  'Via',
  'Cookie',
  'x-svc-method',
  'X-SVC-anything',
]) {
  test(`the caller's ${name} is not relayed`, (t) => {
    t.deepEqual(
      requestHeaders(
        [
          [name, '1'],
          ['Accept', '*/*'],
        ],
        null,
      ),
      {
        tag: 'headers',
        headers: [['accept', '*/*']],
      },
    )
  })
}

test('fields that Connection names are not relayed', (t) => {
  const sent: HeaderPair[] = [
    ['Connection', 'close, X-Secret-Hop'],
    ['X-Secret-Hop', '1'],
    ['X-Stays', '1'],
  ]
  t.deepEqual(requestHeaders(sent, null), { tag: 'headers', headers: [['x-stays', '1']] })
})

test('the credential is injected last, under its own name', (t) => {
  t.deepEqual(requestHeaders([['X-A', '1']], AUTHORIZATION), {
    tag: 'headers',
    headers: [
      ['x-a', '1'],
      ['authorization', 'Bearer the-secret'],
    ],
  })
})

test('Connection cannot remove the credential', (t) => {
  const verdict = requestHeaders([['Connection', 'authorization']], AUTHORIZATION)
  t.deepEqual(verdict, { tag: 'headers', headers: [['authorization', 'Bearer the-secret']] })
})

for (const [name, injected] of [
  ['authorization', 'Authorization'],
  ['AUTHORIZATION', 'authorization'],
  ['X-Api-Key', 'x-api-key'],
  ['x_api_key', 'x-api-key'],
  ['x-api-key', 'X_API_KEY'],
] as const) {
  test(`the caller's ${name} with an injected ${injected} is refused`, (t) => {
    t.deepEqual(requestHeaders([[name, 'mine']], [injected, 'secret']), {
      tag: 'refused',
      fault: 'header_duplicates_injected',
      name,
    })
  })
}

for (const [title, pair, fault] of [
  ['CR LF in a value', ['x', 'a\r\nhost: b'], 'header_value'],
  ['a lone LF in a value', ['x', 'a\nb'], 'header_value'],
  ['NUL in a value', ['x', 'a\0b'], 'header_value'],
  ['a character beyond latin1', ['x', '€'], 'header_value'],
  ['an empty name', ['', 'a'], 'header_name'],
  ['a space in a name', ['x y', 'a'], 'header_name'],
  ['a colon in a name', ['x:', 'a'], 'header_name'],
  ['LF in a name', ['x\n', 'a'], 'header_name'],
  ['a name beyond ASCII', ['é', 'a'], 'header_name'],
] as const) {
  test(`${title} is refused, sent or injected`, (t) => {
    const refused = { tag: 'refused', fault, name: pair[0] } as const
    t.deepEqual(requestHeaders([pair], null), refused)
    t.deepEqual(requestHeaders([], pair), refused)
  })
}

test('only allowed response headers are relayed', (t) => {
  const headers = responseHeaders({
    'content-type': 'text/plain',
    'set-cookie': ['a=1', 'b=2'],
    'www-authenticate': 'Basic',
    'strict-transport-security': 'max-age=1',
    'alt-svc': 'h3',
    'access-control-allow-origin': '*',
    server: 'x',
    'content-length': '5',
    'transfer-encoding': 'chunked',
    'x-request-id': 'upstream-id',
    'x-ratelimit-limit': '10',
    'x-svc-upstream-request-id': 'forged',
    vary: ['accept', 'origin'],
    etag: 'with\nline feed',
  })
  t.deepEqual(headers, [
    ['content-type', 'text/plain'],
    ['x-svc-upstream-request-id', 'upstream-id'],
    ['x-ratelimit-limit', '10'],
    ['vary', 'accept'],
    ['vary', 'origin'],
  ])
})

test('the name of a header field carries no secret', (t) => {
  const secret = 'a-little-secret'
  const redactor = createRedactor(
    new SecretEncodings(Buffer.from(secret), readAuthScheme('bearer')!),
  )
  const hex = Buffer.from(secret).toString('hex')
  const headers = responseHeaders(
    {
      'x-ratelimit-a-little-secret': '1',
      [`x-ratelimit-${hex}`]: '1',
      'x-ratelimit-sk_4f9': '1',
      'x-ratelimit-Remaining-Tokens': '7',
    },
    redactor,
  )
  t.deepEqual(headers, [['x-ratelimit-remaining-tokens', '7']])
})

const now = new Date()
const facts = {
  endId: '01890a5d-ac96-774b-bcce-b302099a8057',
  caller: {
    address: '192.0.2.1',
    principal: { tenantId: 't1', subject: 'a1', subjectType: 'agent', actors: [], clientId: 'c1' },
  },
  credentialId: 'v1',
  authority: { kind: 'grant', id: 'g1' },
  host: 'api.example.com',
  method: 'GET',
  requestId: 'r1',
} as unknown as CallFacts
const report: RelayReport = {
  outcome: 'completed',
  status: 200,
  bytes: 12,
  requestBytes: 5,
  isHeard: true,
  responseBytes: 7,
  chunks: 1,
  durationMs: 1.4,
  redactions: 0,
  tokens: { input: null, output: null },
  unreportedTokens: 0,
  proxyError: null,
}
/** The event data without actor and resource. */
const fieldsOf = ({ data }: { readonly data: Readonly<Record<string, unknown>> }) => {
  const { actor: _actor, resource: _resource, request_id: _requestId, ...fields } = data
  return fields
}

test('the end event has all figures, and the outcome of the report', (t) => {
  const plain = streamClosed(facts, report, now)
  t.deepEqual(fieldsOf(plain), {
    bytes: 12,
    chunks: 1,
    credential_id: 'v1',
    duration_ms: 1,
    host: 'api.example.com',
    method: 'GET',
    outcome: 'completed',
    status: 200,
  })
  t.is(plain.audit?.outcome, 'success')
  t.is(plain.audit?.grantId, 'g1')
  const tokens = { input: 3, output: 0 }
  const revoked = { ...report, outcome: 'revoked', redactions: 2, tokens } as const
  const ended = streamClosed(facts, revoked, now)
  t.like(fieldsOf(ended), { input_tokens: 3, output_tokens: 0, redactions: 2, outcome: 'revoked' })
  t.is(ended.audit?.outcome, 'failure')
})

test('event data is in the order of the audit chain', (t) => {
  const tokens = { input: 1, output: 2 }
  for (const event of [
    credentialAccessed(facts, now),
    streamClosed(facts, report, now),
    streamClosed(facts, { ...report, redactions: 1, tokens }, now),
  ]) {
    const fields = fieldsOf(event)
    t.is(JSON.stringify(fields), canonicalJson(fields), event.type)
  }
})

test('templates write the same events', (t) => {
  const templates = new CallTemplates({ ...facts, requestId: 'another', host: 'other.example' })
  for (const call of [
    { ...facts, templates },
    { ...facts, templates, requestId: 'quoted "\n"', host: 'other.example', method: 'POST' },
  ]) {
    const plain = { ...call, templates: undefined }
    const begun = { id: call.endId, tenantId: 't1', occurredAt: now }
    t.like(beginEvent(call, now), {
      ...begun,
      id: beginEvent(plain, now).id,
      ...eventText(credentialAccessed(plain, now)),
    })
    t.like(endEvent(call, report, now), {
      ...begun,
      ...eventText(streamClosed(plain, report, now)),
    })
    for (const odd of [
      { ...report, redactions: 1 },
      { ...report, outcome: 'revoked' },
      { ...report, tokens: { input: 1, output: null } },
    ] as const) {
      t.deepEqual(endEvent(call, odd, now), streamClosed(plain, odd, now))
    }
  }
})

const shares = () =>
  createEgressShares({
    egress_calls_per_agent_max: 8,
    egress_calls_per_tenant_max: 8,
    egress_buffered_bytes_max: 1000,
    egress_buffered_bytes_per_tenant_max: 1000,
  })

function requestOf(tenantId: string): ProxyRequest {
  const principal = { tenantId, subject: 'agent', subjectType: 'agent', actors: [] }
  return {
    principal: packPrincipal(principal as unknown as Principal),
    clientAddress: '127.0.0.1',
    credentialId: '00000000-0000-4000-8000-000000000001',
    method: 'GET',
    url: 'https://upstream.example/',
    headers: [],
    body: null,
    bodyBytes: null,
    authScheme: null,
    approvalId: null,
    stream: true,
  }
}

test('a call that waits for a token gives its place up immediately', async (t) => {
  const calls = new FairShare({
    resource: 'egress_calls',
    total: 2,
    levels: [
      { name: 'tenant', max: 2 },
      { name: 'agent', max: 2 },
    ],
  })
  const closed: unknown[] = []
  const released: string[] = []
  let waiting = 0
  const late: ((credential: object) => void)[] = []
  const proxy = createProxy({
    calls,
    groups: { of: () => [] },
    memoryOf: (tenantId: string, giveUp: () => boolean) =>
      new HeldBytes(shares().bytes, tenantId, [], giveUp),
    rules: { privateNetworks: true, nonStandardPorts: true },
    bodyBytesMax: 1000,
    admission: {
      admit: () => ({ tag: 'admitted', row: {}, facts: {}, allowRange: false, budget: null }),
      close: (end: object) => closed.push(end),
    },
    credentialCache: {
      // The token endpoint is silent.
      unseal: () => {
        waiting += 1
        return new Promise((resolve) => late.push(resolve))
      },
    },
  } as unknown as ProxyNeeds)
  const context = { requestId: 'r' } as Parameters<typeof proxy>[1]
  const [first] = [proxy(requestOf('hostile'), context), proxy(requestOf('hostile'), context)]
  t.is(waiting, 2)
  void proxy(requestOf('honest'), context)
  t.deepEqual(await first, { tag: 'busy' })
  t.is(waiting, 3, 'the other tenant has the place')
  t.is(closed.length, 1)
  t.is(calls.usedBy(0, 'hostile'), 1)
  late[0]!({ release: () => released.push('first') })
  await new Promise(setImmediate)
  t.deepEqual(released, ['first'], 'a token that comes too late is wiped')
})

test('memory is taken back from the oldest calls of the tenant that holds most', (t) => {
  const { bytes } = shares()
  const ended: string[] = []
  const call = (tenantId: string, name: string, canEnd = true) => {
    const held: HeldBytes = new HeldBytes(bytes, tenantId, [], () => {
      if (!canEnd) return false
      ended.push(name)
      held.release()
      return true
    })
    return held
  }
  const answered = call('hostile', 'answered', false)
  t.true(answered.take(100))
  const [first, second] = [call('hostile', 'first'), call('hostile', 'second')]
  for (const held of [first, second])
    for (let times = 0; times < 4; times += 1) t.true(held.take(100))
  t.true(call('small', 'small').take(100))
  const honest = call('honest', 'honest')
  t.true(honest.take(300))
  t.deepEqual(ended, ['first'])
  t.false(first.take(1), 'it holds nothing from then on')
  t.is(bytes.usedBy(0, 'hostile'), 500)
  t.true(honest.take(100))
  t.false(honest.take(100), 'a tenant that holds memory takes none back')
  t.false(call('other', 'other').take(900), 'more than the largest holder has')
  t.deepEqual(ended, ['first'])
})

/** Revocations apply within this, also without an announcement. */
const REVOKED_WITHIN_MS = 1_000

function callerAt(callers: KnownCallers, readMs: number, block: Block | null): KnownCaller {
  const caller = {
    key: 'one',
    row: {} as never,
    authorities: [],
    readMs,
    generation: callers.generation,
    usedMs: readMs,
    block,
    isRefreshing: false,
    latest: null,
  }
  callers.remember(caller)
  return caller
}

const authority = { kind: 'grant', id: 'g' } as const
const blockAt = (nowMs: number, limits: BlockLimits | null = null, held = NOTHING) =>
  new Block({ id: 'b', credentialId: 'c', authority, callsMax: 4, nowMs, limits, held })

test('what is known expires within a second, and immediately when a change is announced', (t) => {
  const callers = new KnownCallers()
  const caller = callerAt(callers, 0, blockAt(0))
  t.true(callers.isFresh(caller, 0))
  t.true(callers.isFresh(caller, 500))
  t.false(callers.isFresh(caller, REVOKED_WITHIN_MS))
  callers.forget()
  t.false(callers.isFresh(caller, 0))
  // A read that began before the change.
  callers.remember({ ...caller, readMs: 10 })
  t.false(callers.isFresh(callers.find('one')!, 10))
})

test('nothing is admitted without a block, or with one that was not renewed', (t) => {
  const callers = new KnownCallers()
  t.false(callers.isFresh(callerAt(callers, 0, null), 0))
  const block = blockAt(0)
  t.true(callers.isFresh(callerAt(callers, 50_000, block), 50_000))
  t.true(callers.isRenewalDue(block, 50_000))
  // Other processes consider this one dead after two minutes.
  t.false(callers.isFresh(callerAt(callers, 60_000, block), 60_000))
  block.renewedMs = 60_000
  t.true(callers.isFresh(callerAt(callers, 60_000, block), 60_000))
})

test('a caller is read again once, before it expires', (t) => {
  const callers = new KnownCallers()
  const caller = callerAt(callers, 0, blockAt(0))
  t.false(callers.takeRefresh(caller, 100))
  t.true(callers.takeRefresh(caller, 450))
  t.false(callers.takeRefresh(caller, 460))
})

test('a block is closed without recent calls, when all its calls are recorded', (t) => {
  const callers = new KnownCallers()
  const block = blockAt(0)
  callerAt(callers, 0, block)
  t.deepEqual(callers.takeIdle(1_000), [])
  block.unrecorded = 1
  t.deepEqual(callers.takeIdle(10_000), [])
  block.unrecorded = 0
  t.deepEqual(callers.takeIdle(10_000), [block])
  t.is(callers.size, 0)
})

test('the credential is stamped as used once a second, and again for later calls', (t) => {
  const block = blockAt(0)
  t.false(block.takeStamp(500))
  t.true(block.isStampDue)
  t.true(block.takeStamp(1_000))
  t.false(block.isStampDue)
})

test('a block with limits admits what it holds, and takes back what a call did not use', (t) => {
  const block = blockAt(0, { hasRequests: true, hasBytes: true }, { requests: 2, bytes: 1_000 })
  t.is(block.takeCall(1_001), undefined)
  t.deepEqual(block.takeCall(400), { takenBytes: 1_000 })
  t.is(block.takeCall(0), undefined, 'no byte is left')
  block.add({ requests: 0, bytes: 600 })
  t.is(block.takeBytes(601, 2_000), 0)
  t.is(block.takeBytes(100, 500), 500)
  t.deepEqual(block.takeCall(0), { takenBytes: 100 })
  block.add({ requests: 0, bytes: 100 })
  t.is(block.takeCall(0), undefined, 'no request is left')
})

test('a block with limits is refilled once at a time, and closed when something changes', (t) => {
  const callers = new KnownCallers()
  const block = blockAt(0, { hasRequests: true, hasBytes: false }, { requests: 512, bytes: 0 })
  const open = blockAt(0)
  callerAt(callers, 0, block)
  t.is(block.refillDue(0), null)
  for (let call = 0; call < 300; call += 1) block.takeCall(0)
  t.is(block.refillDue(0)?.requests, 300)
  block.isRefilling = true
  t.is(block.refillDue(0), null)
  t.false(block.isSettled)
  block.isRefilling = false
  t.deepEqual(callers.forget(), [block])
  t.true(block.isRetired)
  t.is(block.takeBytes(0, 1), 0)
  callerAt(callers, 0, open)
  t.deepEqual(callers.forget(), [], 'one without limits stays')
})
