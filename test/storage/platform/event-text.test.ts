/** A template of an event produces the same text as the event. */
import test from 'ava'
import * as fc from 'fast-check'
import { EventForm, eventText } from '../../../storage/platform/event-text.js'
import type { NewEvent } from '../../../storage/platform/outbox.js'
import { runs } from '../../support/runs.js'

const word = fc.string({ unit: 'binary', maxLength: 12 })
const party = fc.record({ type: word, id: word })
const changing = fc.record({ id: fc.uuid(), occurredAt: fc.date({ noInvalidDate: true }) })
const standing = fc.record({
  tenantId: fc.uuid(),
  type: fc.constantFrom('auth.token.issued', 'auth.login.failed', 'egress.stream.rejected'),
  actor: party,
  fields: fc.dictionary(word, fc.jsonValue(), { maxKeys: 4 }),
  audit: fc.option(
    fc.record({ subject: fc.record({ sub: word, subject_type: word }), ip: fc.option(word) }),
    { nil: undefined },
  ),
})
const blanks = fc.tuple(word, word, fc.oneof(word, fc.constant(null)))

/** What the database reads from both, as `svc_event_data` does. */
function dataOf(about: string, line: string): unknown {
  const { data, subject, resource, request_id: requestId } = JSON.parse(line)
  if (about !== 'true') return { ...data, ...JSON.parse(about) }
  return {
    ...data,
    ...(subject === null ? {} : { actor: { type: subject.subject_type, id: subject.sub } }),
    ...(resource === null ? {} : { resource }),
    request_id: requestId,
  }
}

test('a filled template has the text of the event', (t) => {
  fc.assert(
    fc.property(standing, fc.array(fc.tuple(changing, blanks), { maxLength: 4 }), (said, uses) => {
      const { tenantId, type, actor, fields, audit } = said
      const told = (id: string, expiresAt: string, requestId: string | null) =>
        ({
          tenantId,
          type,
          data: {
            actor,
            resource: { type: 'token', id },
            request_id: requestId,
            ...fields,
            expires_at: expiresAt,
          },
          audit,
        }) satisfies Partial<NewEvent>
      const form = new EventForm(3, (id, expiresAt, requestId) => told(id, expiresAt, requestId))
      for (const [{ id, occurredAt }, words] of uses) {
        const event = { id, occurredAt, ...told(...words) }
        const { about, line, ...rest } = form.fill(id, occurredAt, words)
        t.deepEqual({ about, line }, eventText(event))
        t.deepEqual(rest, { id, tenantId, type, occurredAt })
        t.deepEqual(dataOf(about, line), JSON.parse(JSON.stringify(event.data)))
      }
    }),
    { numRuns: runs(500) },
  )
})
