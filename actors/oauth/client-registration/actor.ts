/**
 * Dynamic client registration (RFC 7591) and its management (RFC 7592).
 *
 * A client never gets more scopes than its initial access token permits. Without such a token it gets
 * what the token permits by default. The token determines the tenant. Without a token the host determines it, never
 * the metadata.
 */
import { type ActorRef, defineActor, type MessageContext } from '../../../runtime/kernel/actor.js'
import {
  type ApplicationRow,
  deleteApplication,
  findApplication,
  findClient,
  isSecretOf,
  secretsInForce,
  insertApplication,
  lockApplication,
  newClientSecret,
  removeApplicationSecrets,
  replaceApplication,
  rotateApplicationSecret,
} from '../../../storage/oauth/applications.js'
import { appendAudit } from '../../../storage/operations/audit.js'
import {
  useRegistrationToken,
  writeRegistration,
} from '../../../storage/oauth/client-registration.js'
import type { Transaction } from '../../../storage/platform/sql.js'
import type { ApplicationDraft } from '../clients/protocol.js'
import { resourceScopesFor } from '../clients/resource-scopes.js'
import { needsSecret, optionalMembers } from '../clients/rows.js'
import { clientKind } from '../clients/rules.js'
import type { AuditOnlyType } from '../../domain/audit.js'
import { asId } from '../../domain/ids.js'
import { tenants } from '../../identity/tenants/protocol.js'
import {
  fairDocuments,
  type FairDocumentsNeeds,
} from '../../platform/outbound-http/fair-documents.js'
import { tokens, type TokensProtocol } from '../tokens/protocol.js'
import { admit, type AdmissionNeeds, denied, authorizeManagement, sha256 } from './admission.js'
import { createRegistrationToken, type InitialTokenNeeds, TOKEN_BYTES } from './initial-tokens.js'
import { validateMetadata, type ValidateMetadataNeeds } from './validate-metadata.js'
import { metadataOf, refused } from './metadata.js'
import {
  type ClientMetadata,
  type MetadataRefused,
  type Registration,
  clientRegistration,
  type ClientRegistrationProtocol,
} from './protocol.js'

/** Sector identifier documents that are waited for at the same time. */
const FETCHING_MAX = 64
const FETCHING_PER_TENANT_MAX = 2

export type ClientRegistrationNeeds = AdmissionNeeds &
  InitialTokenNeeds &
  FairDocumentsNeeds &
  ValidateMetadataNeeds & { readonly tokens: ActorRef<TokensProtocol> }

/** Rolls the transaction back: a concurrent registration took the last use of the token. */
class TokenSpent extends Error {}

export const clientRegistrationActor = defineActor<
  ClientRegistrationProtocol,
  ClientRegistrationNeeds
>({
  address: clientRegistration,
  asks: { tenants, tokens },
  // Few at once beside those that wait for a document: registrations queue here, where the queue is bounded, and not
  // for a connection.
  mailbox: { capacity: 512, inflightMax: 8 + FETCHING_MAX },
  // The actor has no state that a restart would repair.
  supervision: { onFailure: 'resume' },
  create: (needs) => {
    const { database, clock, random, tokens } = needs
    /** Drops the cached client in this process. The commit notifies the other processes. */
    const forget = (clientId: string) => tokens.send('invalidate', { ids: [clientId] })
    const { faultOf } = needs.documents
    const documentsOf = fairDocuments(needs, {
      resource: 'sector_identifiers',
      total: FETCHING_MAX,
      perSenderMax: FETCHING_PER_TENANT_MAX,
    })
    const inTenant = (tenantId: string, { signal }: MessageContext) => ({
      ...needs,
      documents: { faultOf, ...documentsOf({ tenantId }) },
      resourceScopes: (draft: ApplicationDraft) =>
        resourceScopesFor(database, tenantId, draft, 'open', signal),
    })
    const auditOf = (
      type: AuditOnlyType,
      tenantId: string,
      clientId: string,
      from: { address: string; tokenId: string | null },
      context: MessageContext,
    ) => ({
      id: random.uuid(),
      tenantId,
      type,
      occurredAt: clock.now(),
      subject: { sub: clientId, subject_type: 'service' },
      actors: [],
      clientId,
      delegationId: null,
      grantId: null,
      resource: { type: 'application', id: clientId },
      outcome: 'success' as const,
      requestId: context.requestId ?? null,
      ip: from.address,
      data: from.tokenId === null ? {} : { registration_token_id: from.tokenId },
    })

    function registrationOf(
      row: ApplicationRow,
      handedOn: ClientMetadata,
      tenantSlug: string,
      clientSecret: string | null,
      registrationAccessToken: string,
    ): Registration {
      const metadata = metadataOf(row, handedOn, tenantSlug)
      const { id: clientId, createdAt: issuedAt } = row
      return { clientId, issuedAt, metadata, clientSecret, registrationAccessToken }
    }

    /** Creates a secret for a client that now needs one, and removes the secret of one that does not. */
    async function changeSecret(tx: Transaction, before: ApplicationRow, needs: boolean) {
      const { tenantId, id: applicationId } = before
      if (!needs) await removeApplicationSecrets(tx, tenantId, applicationId, 'all')
      if (!needs || needsSecret(before)) return null
      const { secret, sha256 } = newClientSecret(random)
      const now = clock.now()
      const rotation = { tenantId, applicationId, secretId: random.uuid(), sha256, now }
      await rotateApplicationSecret(tx, { ...rotation, othersUntil: now })
      return secret
    }

    return {
      async registerClient({ metadata, authorization, host, address }, context) {
        const admitted = await admit(needs, authorization, host, context)
        if (admitted.tag !== 'admitted') return admitted
        const { tenantId, tenantSlug, bounds, tokenId } = admitted
        const read = await validateMetadata(inTenant(tenantId, context), metadata, bounds)
        if (read.tag === 'refused') return read
        if (read.tenant !== null && read.tenant !== tenantId && read.tenant !== tenantSlug)
          return refused('tenant: not the tenant of the initial access token or host')
        const { draft, handedOn } = read
        const kind = clientKind(draft)!
        const secret = needsSecret(kind) ? newClientSecret(random) : null
        const token = random.token(TOKEN_BYTES)
        const now = clock.now()
        try {
          return await database.tenant(
            tenantId,
            async (tx) => {
              if (tokenId !== null && !(await useRegistrationToken(tx, tenantId, tokenId, now)))
                throw new TokenSpent()
              const row = await insertApplication(tx, {
                ...kind,
                id: random.uuid(),
                tenantId,
                name: draft.name,
                redirectUris: [...draft.redirectUris],
                createdAt: now,
                secretSha256: secret?.sha256 ?? null,
                ...optionalMembers(draft),
              })
              await writeRegistration(tx, {
                tenantId,
                applicationId: row.id,
                handedOn,
                tokenSha256: sha256(token),
                bounds,
              })
              const from = { address, tokenId }
              appendAudit(tx, [
                auditOf('admin.application.registered', tenantId, row.id, from, context),
              ])
              const clientSecret = secret?.secret ?? null
              return {
                tag: 'registered',
                registration: registrationOf(row, handedOn, tenantSlug, clientSecret, token),
              }
            },
            { signal: context.signal },
          )
        } catch (error) {
          if (error instanceof TokenSpent) return denied('the initial access token is used up')
          throw error
        }
      },

      async readRegistration({ clientId, authorization }, context) {
        const found = await authorizeManagement(needs, clientId, authorization, context)
        if (found.tag !== 'managed') return found
        const { tenantId, tenantSlug, handedOn } = found.row
        const row = await database.tenant(
          tenantId,
          (tx) => findApplication(tx, tenantId, clientId),
          { signal: context.signal },
        )
        if (row === undefined) return denied('the client was deleted')
        return {
          tag: 'found',
          registration: registrationOf(row, handedOn, tenantSlug, null, found.token),
        }
      },

      async replaceRegistration({ clientId, metadata, authorization, address }, context) {
        const found = await authorizeManagement(needs, clientId, authorization, context)
        if (found.tag !== 'managed') return found
        const { tenantId, tenantSlug, bounds, name } = found.row
        const read = await validateMetadata(inTenant(tenantId, context), metadata, bounds, name)
        if (read.tag === 'refused') return read
        const named = metadata['client_id']
        if (typeof named !== 'string' || asId(named) !== clientId)
          return refused('client_id: must be the id of this registration (RFC 7592 section 2.2)')
        const { draft, handedOn } = read
        const stated = metadata['client_secret'] ?? null
        const outcome = await database.tenant(
          tenantId,
          async (tx): Promise<Registration | MetadataRefused | null> => {
            const before = await lockApplication(tx, tenantId, clientId)
            if (before === undefined) return null
            if (stated !== null && !(await hasSecret(tx, clientId, stated, clock.now())))
              return refused('client_secret: not the issued secret')
            const kind = clientKind(draft, before)!
            const secret = await changeSecret(tx, before, needsSecret(kind))
            const row = await replaceApplication(
              tx,
              {
                ...kind,
                id: clientId,
                tenantId,
                name: draft.name,
                redirectUris: [...draft.redirectUris],
                updatedAt: clock.now(),
                // Settings of the operator are not part of the metadata and stay unchanged.
                audience: before.audience,
                requirePkce: before.requirePkce,
                defaultScopes: before.defaultScopes,
                ...optionalMembers(draft),
              },
              before,
            )
            const kept = { handedOn, tokenSha256: null, bounds: null }
            await writeRegistration(tx, { tenantId, applicationId: clientId, ...kept })
            const from = { address, tokenId: null }
            appendAudit(tx, [
              auditOf('admin.application.updated', tenantId, clientId, from, context),
            ])
            return registrationOf(row, handedOn, tenantSlug, secret, found.token)
          },
          { signal: context.signal },
        )
        forget(clientId)
        if (outcome === null) return denied('the client was deleted')
        return 'tag' in outcome ? outcome : { tag: 'found', registration: outcome }
      },

      async deleteRegistration({ clientId, authorization, address }, context) {
        const found = await authorizeManagement(needs, clientId, authorization, context)
        if (found.tag !== 'managed') return found
        const { tenantId } = found.row
        const from = { address, tokenId: null }
        const removed = await database.tenant(
          tenantId,
          async (tx) => {
            if (!(await deleteApplication(tx, tenantId, clientId))) return false
            appendAudit(tx, [
              auditOf('admin.application.deleted', tenantId, clientId, from, context),
            ])
            return true
          },
          { signal: context.signal },
        )
        forget(clientId)
        return removed ? { tag: 'removed' } : denied('the client was deleted')
      },

      createRegistrationToken: (message, context) =>
        createRegistrationToken(needs, message, context),
    }
  },
})

async function hasSecret(
  tx: Transaction,
  clientId: string,
  stated: unknown,
  now: Date,
): Promise<boolean> {
  if (typeof stated !== 'string') return false
  const client = await findClient(tx, clientId)
  return client !== undefined && isSecretOf(stated, secretsInForce(client, now))
}
