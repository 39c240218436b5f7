import test from 'ava'
import {
  beginEvent,
  type CallFacts,
  CallTemplates,
  credentialAccessed,
  endEvent,
  streamClosed,
} from '../../../../actors/vault/egress/admission/events.js'
import type { RelayReport } from '../../../../actors/vault/egress/protocol.js'
import { eventText } from '../../../../storage/platform/event-text.js'
import { canonicalJson } from '../../../../storage/operations/audit-chain.js'

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
  bytes: 12,
  requestBytes: 5,
  responseBytes: 7,
  chunks: 1,
  durationMs: 1.4,
  redactions: 0,
  tokens: { input: null, output: null },
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
