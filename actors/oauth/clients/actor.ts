/** Manages the applications (OAuth clients) of a tenant. */
import { type ActorRef, defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Random } from '../../../runtime/kernel/random.js'
import {
  type ApplicationRow,
  deleteApplication,
  findApplication,
  insertApplication,
  listApplications,
  lockApplication,
  newClientSecret,
  removeApplicationSecrets,
  replaceApplication,
  rotateApplicationSecret,
} from '../../../storage/oauth/applications.js'
import { isAudienceTaken } from '../../../storage/oauth/audiences.js'
import { idempotently } from '../../../storage/platform/idempotency.js'
import type { Database, Transaction } from '../../../storage/platform/sql.js'
import { isUuid } from '../../domain/ids.js'
import { changedName, refusedName } from '../../domain/shown-names.js'
import { tenants, type TenantsProtocol } from '../../identity/tenants/protocol.js'
import { page } from '../../platform/paging.js'
import { ownershipFault } from '../api-resources/ownership.js'
import { tokens, type TokensProtocol } from '../tokens/protocol.js'
import { changedMembers, powersOf, recordAction } from './audit.js'
import { needsSecret, optionalMembers, stated } from './rows.js'
import { resourceScopesFor } from './resource-scopes.js'
import { clientKind, draftFault, scopesBeyond } from './rules.js'
import {
  type Application,
  type ApplicationCreated,
  type ApplicationInvalid,
  type ApplicationRefused,
  type ApplicationReplaced,
  type ApplicationsProtocol,
  type ApplicationUnknown,
  applications,
  type CreateApplication,
  type ReplaceApplication,
} from './protocol.js'

export type ApplicationsNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly tenants: ActorRef<TenantsProtocol>
  readonly tokens: ActorRef<TokensProtocol>
  readonly isOwnAddress: (uri: string) => boolean
}

export const applicationsActor = defineActor<ApplicationsProtocol, ApplicationsNeeds>({
  address: applications,
  asks: { tenants, tokens },
  mailbox: { capacity: 1024, inflightMax: 128 },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const { database, clock, random, tokens } = needs

    /** Why the application may not have the audience. Null if it may, or has it already. */
    async function audienceFault(
      audience: string | undefined,
      { tenantId, applicationId }: { tenantId: string; applicationId: string | null },
      context: MessageContext,
    ): Promise<ApplicationRefused | null> {
      if (audience === undefined) return null
      if (applicationId !== null && isUuid(applicationId)) {
        const before = await database.tenant(
          tenantId,
          (tx) => findApplication(tx, tenantId, applicationId),
          { signal: context.signal },
        )
        if (before?.audience === audience) return null
      }
      const fault = await ownershipFault(needs, audience, tenantId, context)
      return fault?.tag === 'conflict' ? { tag: 'audience_taken' } : fault
    }

    /** Runs a write. The claims of audiences decide between concurrent ones. */
    async function orTaken<T>(write: () => Promise<T>): Promise<T | { tag: 'audience_taken' }> {
      try {
        return await write()
      } catch (error) {
        if (!isAudienceTaken(error)) throw error
        return { tag: 'audience_taken' }
      }
    }

    /** Inserts the application. Only the outcome contains its secret. */
    async function insert(
      tx: Transaction,
      { caller, draft }: CreateApplication,
      requestId: string | undefined,
    ): Promise<ApplicationCreated> {
      const kind = clientKind(draft)!
      const secret = needsSecret(kind) ? newClientSecret(random) : null
      const now = clock.now()
      const application = await insertApplication(tx, {
        ...kind,
        id: random.uuid(),
        tenantId: caller.principal.tenantId,
        name: draft.name,
        redirectUris: [...draft.redirectUris],
        createdAt: now,
        secretSha256: secret?.sha256 ?? null,
        ...optionalMembers(draft),
      })
      const data = powersOf(application)
      const action = { did: 'created', application, data, occurredAt: now } as const
      recordAction(tx, random, caller, requestId, action)
      return {
        tag: 'created',
        application: toApplication(application),
        clientSecret: secret?.secret ?? null,
        replayed: false,
      }
    }

    /** Creates a secret for a client that now needs one, and removes the secret of one that does not. */
    async function replaceLocked(
      tx: Transaction,
      before: ApplicationRow,
      { caller, draft, status }: ReplaceApplication,
      requestId: string | undefined,
    ): Promise<ApplicationReplaced | ApplicationInvalid> {
      const name = changedName(draft.name, before.name)
      if (name === null) return { ...refusedName('/name'), error: 'bad_request' }
      const kind = clientKind(draft, before)!
      const now = clock.now()
      const { tenantId, id } = before
      const secret = needsSecret(kind) && !needsSecret(before) ? newClientSecret(random) : null
      if (!needsSecret(kind)) await removeApplicationSecrets(tx, tenantId, id, 'all')
      if (secret !== null)
        await rotateApplicationSecret(tx, {
          tenantId,
          applicationId: id,
          secretId: random.uuid(),
          sha256: secret.sha256,
          now,
          othersUntil: now,
        })
      const row = await replaceApplication(
        tx,
        {
          ...kind,
          id,
          tenantId,
          name,
          redirectUris: [...draft.redirectUris],
          updatedAt: now,
          ...stated({ status }),
          ...optionalMembers(draft),
        },
        before,
      )
      const data = { changed: changedMembers(before, row), ...powersOf(row) }
      const action = { did: 'updated', application: row, data, occurredAt: now } as const
      recordAction(tx, random, caller, requestId, action)
      return {
        tag: 'replaced',
        application: toApplication(row),
        clientSecret: secret?.secret ?? null,
      }
    }

    /** Drops the cached client in this process. The commit notifies the other processes. */
    const forget = (applicationId: string) => tokens.send('invalidate', { ids: [applicationId] })

    /** Runs `change` on the locked application of the tenant, if it exists. */
    async function changing<T>(
      tenantId: string,
      applicationId: string,
      signal: AbortSignal,
      change: (tx: Transaction, row: ApplicationRow) => Promise<T>,
    ): Promise<T | ApplicationUnknown> {
      if (!isUuid(applicationId)) return { tag: 'unknown' }
      const changed = await database.tenant<T | ApplicationUnknown>(
        tenantId,
        async (tx) => {
          const row = await lockApplication(tx, tenantId, applicationId)
          return row === undefined ? { tag: 'unknown' } : change(tx, row)
        },
        { signal },
      )
      forget(applicationId)
      return changed
    }

    return {
      async listApplications({ principal, limit, after }, context) {
        const { tenantId } = principal
        const rows = await database.tenant(
          tenantId,
          (tx) => listApplications(tx, tenantId, limit + 1, after),
          { signal: context.signal },
        )
        const { items, next } = page(rows, limit)
        return { tag: 'listed', applications: items.map(toApplication), next }
      },

      async getApplication({ principal, applicationId }, context) {
        const { tenantId } = principal
        if (!isUuid(applicationId)) return { tag: 'unknown' }
        const row = await database.tenant(
          tenantId,
          (tx) => findApplication(tx, tenantId, applicationId),
          { signal: context.signal },
        )
        if (row === undefined) return { tag: 'unknown' }
        return { tag: 'found', application: toApplication(row) }
      },

      async createApplication(message, context) {
        const { caller, draft, idempotency } = message
        const { principal } = caller
        const { tenantId } = principal
        const { signal } = context
        const resourceScopes = await resourceScopesFor(database, tenantId, draft, 'all', signal)
        const fault = draftFault(draft, resourceScopes)
        if (fault !== undefined) return fault
        // A creator can act as the client, so the client must not have scopes that its creator lacks.
        const beyond = scopesBeyond(draft, principal.scopes)
        if (beyond.length > 0) return { tag: 'forbidden', scopes: beyond }
        const unowned = await audienceFault(
          draft.audience,
          { tenantId, applicationId: null },
          context,
        )
        if (unowned !== null) return unowned
        return orTaken(() =>
          database.tenant(
            tenantId,
            (tx) =>
              idempotently(
                tx,
                idempotency,
                () => insert(tx, message, context.requestId),
                (created) => ({ ...created, clientSecret: null }),
              ),
            { signal },
          ),
        )
      },

      async replaceApplication(message, context) {
        const { caller, applicationId, draft } = message
        const { principal } = caller
        const { tenantId } = principal
        const { signal } = context
        const resourceScopes = await resourceScopesFor(database, tenantId, draft, 'all', signal)
        const fault = draftFault(draft, resourceScopes)
        if (fault !== undefined) return fault
        // Who configures a client can act as it.
        const beyond = scopesBeyond(draft, principal.scopes)
        if (beyond.length > 0) return { tag: 'forbidden', scopes: beyond }
        const unowned = await audienceFault(draft.audience, { tenantId, applicationId }, context)
        if (unowned !== null) return unowned
        return orTaken(() =>
          changing(tenantId, applicationId, signal, (tx, row) =>
            replaceLocked(tx, row, message, context.requestId),
          ),
        )
      },

      async deleteApplication({ caller, applicationId }, context) {
        const { principal } = caller
        return changing(
          principal.tenantId,
          applicationId,
          context.signal,
          async (tx, application) => {
            await deleteApplication(tx, application.tenantId, application.id)
            const data = { name: application.name }
            const action = { did: 'deleted', application, data, occurredAt: clock.now() } as const
            recordAction(tx, random, caller, context.requestId, action)
            return { tag: 'removed' } as const
          },
        )
      },

      async rotateApplicationSecret({ caller, applicationId, overlapSecs }, context) {
        const { principal } = caller
        return changing(principal.tenantId, applicationId, context.signal, async (tx, row) => {
          if (!needsSecret(row)) return { tag: 'no_secret' }
          // Who has the secret can act as the client.
          const beyond = scopesBeyond(row, principal.scopes)
          if (beyond.length > 0) return { tag: 'forbidden', scopes: beyond }
          const { secret, sha256 } = newClientSecret(random)
          const now = clock.now()
          const { tenantId, id } = row
          await removeApplicationSecrets(tx, tenantId, id, now)
          await rotateApplicationSecret(tx, {
            tenantId,
            applicationId: id,
            secretId: random.uuid(),
            sha256,
            now,
            othersUntil: new Date(now.getTime() + overlapSecs * 1000),
          })
          const data = { overlap_secs: overlapSecs }
          const action = { did: 'secret_rotated', application: row, data, occurredAt: now } as const
          recordAction(tx, random, caller, context.requestId, action)
          return { tag: 'rotated', clientId: id, clientSecret: secret, rotatedAt: now }
        })
      },
    }
  },
})

function toApplication({ heldToMethod: _held, ...row }: ApplicationRow): Application {
  return { ...row, clientId: row.id }
}
