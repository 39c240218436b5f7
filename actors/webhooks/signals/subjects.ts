/** Subjects that a receiver takes out of a stream, and puts back (SSF 1.0 section 8.1.3, RFC 9493). */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import {
  addSubjectRow,
  findSignalStream,
  removeSubjectRow,
  type StreamKey,
  type SubjectKey,
  subjectOfEmail,
} from '../../../storage/webhooks/signal-streams.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { soughtEmail } from '../../domain/email.js'
import type { MemberInvalid } from '../../domain/entities/messages.js'
import type { SignalsHandler, SignalsNeeds } from './needs.js'
import type { ChangeSubject, StreamUnknown, SubjectChanged, TooManySubjects } from './protocol.js'
import { UNKNOWN, withStream } from './streams.js'

/** Subjects that a receiver takes out of one stream. */
const REMOVED_MAX = 10_000

type Json = Readonly<Record<string, unknown>>
/** Null: the service has no such subject. */
type Found = SubjectKey | null

const invalid = (detail: string): MemberInvalid => ({ tag: 'invalid', pointer: '/subject', detail })
const UNREADABLE = invalid('Must be a subject of format iss_sub, email, opaque or complex.')

function member(subject: unknown, name: string): string | undefined {
  const value = typeof subject === 'object' && subject !== null ? (subject as Json)[name] : null
  return typeof value === 'string' && value !== '' && value.length <= 1_024 ? value : undefined
}

/** The `sub` of a user or the id of an agent. Null: it is none of this tenant. */
async function principalOf(
  { issuer, database }: SignalsNeeds,
  tenantId: string,
  subject: unknown,
  context: MessageContext,
): Promise<string | null | MemberInvalid> {
  const format = member(subject, 'format')
  const [iss, sub, email, id] = ['iss', 'sub', 'email', 'id'].map((name) => member(subject, name))
  if (format === 'iss_sub' && iss !== undefined && sub !== undefined)
    return iss === issuer ? sub : null
  if (format === 'opaque' && id !== undefined) return id
  const address = format === 'email' && email !== undefined ? soughtEmail(email) : undefined
  if (address === undefined) return UNREADABLE
  return (await database.system((tx) => subjectOfEmail(tx, tenantId, address), context)) ?? null
}

const COMPLEX_USERS = ['user', 'agent'] as const

async function subjectKey(
  needs: SignalsNeeds,
  tenantId: string,
  subject: Json,
  context: MessageContext,
): Promise<Found | MemberInvalid> {
  if (subject['format'] !== 'complex') {
    const principal = await principalOf(needs, tenantId, subject, context)
    return typeof principal === 'string' ? { principal, session: '' } : principal
  }
  const tenant = subject['tenant'] === undefined ? undefined : member(subject['tenant'], 'id')
  const session = subject['session'] === undefined ? '' : member(subject['session'], 'id')
  const who = COMPLEX_USERS.map((name) => subject[name]).find((one) => one !== undefined)
  const isNamed = session !== '' || who !== undefined || 'tenant' in subject
  if (session === undefined || ('tenant' in subject && tenant === undefined) || !isNamed)
    return UNREADABLE
  if (tenant !== undefined && tenant !== tenantId) return null
  const principal = who === undefined ? '' : await principalOf(needs, tenantId, who, context)
  return typeof principal === 'string' ? { principal, session } : principal
}

const CHANGED: SubjectChanged = { tag: 'changed' }

/** Finds the subject of a message, and its stream. `change` runs for a subject that the service has. */
async function changed<T>(
  needs: SignalsNeeds,
  message: ChangeSubject,
  context: MessageContext,
  change: (tx: Transaction, key: StreamKey, subject: SubjectKey) => Promise<T>,
): Promise<T | SubjectChanged | MemberInvalid | StreamUnknown> {
  const { tenantId } = message.caller.principal
  const subject = await subjectKey(needs, tenantId, message.subject, context)
  if (subject !== null && 'tag' in subject) return subject
  return withStream<T | SubjectChanged>(needs, message, context, async (tx, key) => {
    if ((await findSignalStream(tx, key)) === undefined) return UNKNOWN
    return subject === null ? CHANGED : change(tx, key, subject)
  })
}

export const addSignalSubject: SignalsHandler<'addSignalSubject'> = (needs, message, context) =>
  changed(needs, message, context, async (tx, key, subject) => {
    await addSubjectRow(tx, key, subject)
    return CHANGED
  })

export const removeSignalSubject: SignalsHandler<'removeSignalSubject'> = (
  needs,
  message,
  context,
) =>
  changed<SubjectChanged | TooManySubjects>(needs, message, context, async (tx, key, subject) =>
    (await removeSubjectRow(tx, key, subject, needs.clock.now(), REMOVED_MAX))
      ? CHANGED
      : { tag: 'too_many_subjects', most: REMOVED_MAX },
  )
