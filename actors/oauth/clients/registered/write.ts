/** Creates and replaces applications. Who configures a client can act as it, so it gets only scopes of that caller. */
import type { MessageContext } from '../../../../runtime/kernel/actor.js'
import {
  type ApplicationRow,
  findApplication,
  insertApplication,
  newClientSecret,
  replaceApplicationRow,
} from '../../../../storage/oauth/applications.js'
import { isAudienceTaken } from '../../../../storage/oauth/audiences.js'
import { createOnce } from '../../../platform/creation.js'
import type { Transaction } from '../../../../storage/platform/sql.js'
import type { Caller } from '../../../domain/audit.js'
import { isUuid } from '../../../domain/ids.js'
import { changedName, refusedName } from '../../../domain/shown-names.js'
import { ownershipFault } from '../../../platform/oauth/audience-ownership.js'
import { changedMembers, powersOf, recordAction } from './audit.js'
import { changeSecret, changing } from './change.js'
import type {
  ApplicationCreated,
  ApplicationDraft,
  ApplicationForbidden,
  ApplicationInvalid,
  ApplicationRefused,
  ApplicationReplaced,
  CreateApplication,
  ReplaceApplication,
} from './protocol.js'
import { type ApplicationsNeeds, type Handling, toApplication } from './read.js'
import { resourceScopesFor } from './resource-scopes.js'
import { needsSecret, optionalMembers, stated } from './rows.js'
import { powersBeyond } from '../../../domain/scopes.js'
import { clientKind, draftFault } from './rules.js'
import { inTenant } from '../../../platform/in-tenant.js'

export const createApplication: Handling<'createApplication'> = async (needs, message, context) => {
  const { caller, draft } = message
  const refusal = await refusalOf(needs, caller, draft, null, context)
  if (refusal !== undefined) return refusal
  return orTaken(
    createOnce(
      needs,
      message,
      context,
      (tx) => insert(tx, needs, message, context),
      (created) => ({ ...created, clientSecret: null }),
    ),
  )
}

export const replaceApplication: Handling<'replaceApplication'> = async (
  needs,
  message,
  context,
) => {
  const { caller, draft, applicationId } = message
  const refusal = await refusalOf(needs, caller, draft, applicationId, context)
  if (refusal !== undefined) return refusal
  return orTaken(
    changing(needs, message, context, (tx, row) => replaceLocked(tx, needs, row, message, context)),
  )
}

/** Why the caller may not write the draft. Undefined if they may. `applicationId` is null for a new application. */
async function refusalOf(
  needs: ApplicationsNeeds,
  { principal: { tenantId, scopes } }: Caller,
  draft: ApplicationDraft,
  applicationId: string | null,
  context: MessageContext,
): Promise<ApplicationInvalid | ApplicationForbidden | ApplicationRefused | undefined> {
  const { database } = needs
  const { signal } = context
  const resourceScopes = await resourceScopesFor(database, tenantId, draft, 'all', signal)
  const before =
    applicationId === null || !isUuid(applicationId)
      ? undefined
      : await inTenant(database, tenantId, context, (tx) =>
          findApplication(tx, tenantId, applicationId),
        )
  // A URL of older rules stays until it is changed: it would keep every other member from being changed.
  const kept = [before?.jwksUri, before?.backchannelLogoutUri]
  const fault = await draftFault(draft, resourceScopes, (url) =>
    kept.includes(url) ? undefined : needs.urlFaultOf(url),
  )
  if (fault !== undefined) return fault
  const beyond = powersBeyond(draft.scopes ?? [], scopes)
  if (beyond.length > 0) return { tag: 'forbidden', scopes: beyond }
  const { audience } = draft
  if (audience === undefined || before?.audience === audience) return undefined
  const unowned = await ownershipFault(needs, audience, tenantId, context)
  return unowned?.tag === 'conflict' ? { tag: 'audience_taken' } : unowned
}

/** The claims of audiences decide between concurrent writes. */
const orTaken = <T>(write: Promise<T>): Promise<T | { readonly tag: 'audience_taken' }> =>
  write.catch((error) => {
    if (!isAudienceTaken(error)) throw error
    return { tag: 'audience_taken' as const }
  })

/** Inserts the application. Only the outcome contains its secret. */
async function insert(
  tx: Transaction,
  needs: ApplicationsNeeds,
  { caller, draft }: CreateApplication,
  context: MessageContext,
): Promise<ApplicationCreated> {
  const { clock, random } = needs
  const kind = clientKind(draft)!
  const secret = needsSecret(kind) ? newClientSecret(random) : null
  const application = await insertApplication(tx, {
    ...kind,
    id: random.uuid(),
    tenantId: caller.principal.tenantId,
    name: draft.name,
    redirectUris: [...draft.redirectUris],
    createdAt: clock.now(),
    secretSha256: secret?.sha256 ?? null,
    ...optionalMembers(draft),
  })
  const { id } = application
  recordAction(tx, needs, caller, context, { did: 'created', id, data: powersOf(application) })
  return {
    tag: 'created',
    application: toApplication(application),
    clientSecret: secret?.secret ?? null,
    replayed: false,
  }
}

async function replaceLocked(
  tx: Transaction,
  needs: ApplicationsNeeds,
  before: ApplicationRow,
  { caller, draft, status }: ReplaceApplication,
  context: MessageContext,
): Promise<ApplicationReplaced | ApplicationInvalid> {
  const name = changedName(draft.name, before.name)
  if (name === null) return { ...refusedName('/name'), error: 'bad_request' }
  const kind = clientKind(draft, before)!
  const clientSecret = await changeSecret(tx, needs, before, needsSecret(kind))
  const row = await replaceApplicationRow(
    tx,
    {
      ...kind,
      id: before.id,
      tenantId: before.tenantId,
      name,
      redirectUris: [...draft.redirectUris],
      updatedAt: needs.clock.now(),
      ...stated({ status }),
      ...optionalMembers(draft),
    },
    before,
  )
  const data = { changed: changedMembers(before, row), ...powersOf(row) }
  recordAction(tx, needs, caller, context, { did: 'updated', id: row.id, data })
  return { tag: 'replaced', application: toApplication(row), clientSecret }
}
