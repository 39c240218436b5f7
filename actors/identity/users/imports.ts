/** People of a CSV file, line by line: each is added as `createTenantUser` adds one, each in its own transaction. */
import type { MessageContext } from '../../../runtime/kernel/actor.js'
import { updateTenantUserRow } from '../../../storage/identity/tenant-users.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import { parseEmail } from '../../domain/email.js'
import { DisplayName } from '../../domain/entities/names.js'
import { ROLE, ROLES_MAX, rolesBeyond } from '../../domain/people/role-powers.js'
import { invitationMessages, mailThrottled } from '../../platform/people/invitations.js'
import { MEMBER_CONSTRAINT } from '../../platform/people/provisioning.js'
import { recordAudit } from '../../platform/record-audit.js'
import { csvRows } from './csv.js'
import { insertUser } from './members.js'
import type { Handling, UsersNeeds } from './needs.js'
import {
  IMPORT_LINES_MAX,
  type ImportedLine,
  type ImportRefusal,
  type ImportUsers,
} from './protocol.js'

type Person = { readonly email: string; readonly name: string; readonly roles: readonly string[] }
type Outcome = Pick<ImportedLine, 'outcome' | 'reason'>

const EXISTS = { outcome: 'exists', reason: null } as const
const refused = (reason: ImportRefusal): Outcome => ({ outcome: 'refused', reason })

/** Undoes a transaction that was a trial. */
class Undone extends Error {
  readonly outcome: Outcome

  constructor(outcome: Outcome) {
    super('a trial is undone')
    this.outcome = outcome
  }
}

export const importTenantUsers: Handling<'importTenantUsers'> = async (needs, message, context) => {
  const rows = csvRows(message.csv)
  if (rows === undefined) return { tag: 'unreadable', detail: 'A quote of the CSV has no end.' }
  const [head, ...people] = rows
  const names = head?.cells.map((cell) => cell.trim().toLowerCase()) ?? []
  if (!names.includes('email'))
    return { tag: 'unreadable', detail: 'The first line needs a column "email".' }
  if (people.length > IMPORT_LINES_MAX)
    return { tag: 'unreadable', detail: `A file has at most ${IMPORT_LINES_MAX} people.` }
  const seen = new Set<string>()
  const lines: ImportedLine[] = []
  for (const { line, cells } of people) {
    const cell = (name: string) => (cells[names.indexOf(name)] ?? '').trim()
    const person = {
      email: cell('email'),
      name: cell('name'),
      roles: [...new Set(cell('roles').split(/\s+/).filter(Boolean))],
    }
    const key = person.email.toLowerCase()
    const outcome = seen.has(key) ? EXISTS : await add(needs, message, person, context)
    if (outcome.outcome !== 'refused') seen.add(key)
    lines.push({ line, email: person.email.slice(0, 254), ...outcome })
  }
  return { tag: 'imported', isTrial: message.isTrial, lines }
}

async function add(
  needs: UsersNeeds,
  { caller, isTrial }: ImportUsers,
  person: Person,
  context: MessageContext,
): Promise<Outcome> {
  const { tenantId, scopes } = caller.principal
  const { roles } = person
  const email = parseEmail(person.email)
  if (email === undefined) return refused('email')
  const name = person.name === '' ? undefined : DisplayName.safeParse(person.name)
  if (name?.success === false) return refused('name')
  if (roles.length > ROLES_MAX || !roles.every((role) => ROLE.test(role))) return refused('roles')
  if (rolesBeyond(roles, [], scopes).length > 0) return refused('roles_beyond_caller')
  const invited = { email, locale: undefined }
  const invitation = isTrial
    ? null
    : await invitationMessages(needs).prepare(tenantId, invited, context)
  const draft = { caller, email, displayName: name?.data, profile: {} }
  const prepared = { passwordHash: null, withoutPassword: true, invitation }
  try {
    return await needs.database.system(async (tx) => {
      const made = await insertUser(tx, needs, draft, prepared, context)
      if (made.tag !== 'created') return EXISTS
      const { id, status } = made.user
      if (roles.length > 0) await giveRoles(tx, needs, { caller, id, roles }, context)
      const outcome = { outcome: status === 'invited' ? 'invite' : 'create', reason: null } as const
      if (isTrial) throw new Undone(outcome)
      return outcome
    }, context)
  } catch (error) {
    if (error instanceof Undone) return error.outcome
    if ((error as { constraint?: unknown }).constraint === MEMBER_CONSTRAINT) return EXISTS
    return refused(mailThrottled(error).tag)
  }
}

async function giveRoles(
  tx: Transaction,
  needs: UsersNeeds,
  { caller, id, roles }: Pick<ImportUsers, 'caller'> & { id: string; roles: readonly string[] },
  context: MessageContext,
): Promise<void> {
  const change = { displayName: undefined, roles, metadata: undefined }
  const { tenantId } = caller.principal
  await updateTenantUserRow(tx, tenantId, id, change, needs.clock.now())
  recordAudit(tx, needs, caller, context, {
    type: 'admin.user.updated',
    resource: { type: 'tenant_user', id },
    data: { changed: ['roles'], roles, roles_before: [] },
  })
}
