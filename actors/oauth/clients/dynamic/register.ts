/** Registers a client (RFC 7591). */
import type { Handler, MessageContext } from '../../../../runtime/kernel/actor.js'
import {
  type ApplicationRow,
  insertApplication,
  newClientSecret,
} from '../../../../storage/oauth/applications.js'
import {
  useRegistrationToken,
  writeRegistration,
} from '../../../../storage/oauth/client-registration.js'
import { appendAudit } from '../../../../storage/operations/audit.js'
import type { AuditOnlyType } from '../../../domain/audit.js'
import { sha256 } from '../../../domain/secret-hashes.js'
import { needsSecret, optionalMembers } from '../registered/rows.js'
import { clientKind } from '../registered/rules.js'
import { admit, type AdmissionNeeds, denied } from './admission.js'
import { type InitialTokenNeeds, TOKEN_BYTES } from './initial-tokens.js'
import { metadataOf, refused } from './metadata.js'
import type { ClientMetadata, ClientRegistrationProtocol, Registration } from './protocol.js'
import { validateMetadata, type ValidateMetadataNeeds } from './validate-metadata.js'
import { inTenant } from '../../../platform/in-tenant.js'

export type RegistrationNeeds = AdmissionNeeds & InitialTokenNeeds & ValidateMetadataNeeds

export type Handling<K extends keyof ClientRegistrationProtocol> = Handler<
  RegistrationNeeds,
  ClientRegistrationProtocol,
  K
>

/** Rolls the transaction back: a concurrent registration took the last use of the token. */
class TokenSpent extends Error {}

export const registerClient: Handling<'registerClient'> = async (
  needs,
  { metadata, authorization, host, address },
  context,
) => {
  const { database, clock, random } = needs
  const admitted = await admit(needs, authorization, host, context)
  if (admitted.tag !== 'admitted') return admitted
  const { tenantId, tenantSlug, bounds, tokenId } = admitted
  const read = await validateMetadata(needs, metadata, { tenantId, bounds }, context)
  if (read.tag === 'refused') return read
  if (read.tenant !== null && read.tenant !== tenantId && read.tenant !== tenantSlug)
    return refused('tenant: not the tenant of the initial access token or host')
  const { draft, handedOn } = read
  const kind = clientKind(draft)!
  const secret = needsSecret(kind) ? newClientSecret(random) : null
  const token = random.token(TOKEN_BYTES)
  const now = clock.now()
  try {
    const row = await inTenant(database, tenantId, context, async (tx) => {
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
      const { id: applicationId } = row
      const kept = { handedOn, tokenSha256: sha256(token), bounds }
      await writeRegistration(tx, { tenantId, applicationId, ...kept })
      const client = { tenantId, clientId: applicationId, address, tokenId }
      appendAudit(tx, [auditOf(needs, 'admin.application.registered', client, context)])
      return row
    })
    const clientSecret = secret?.secret ?? null
    const registration = registrationOf(row, handedOn, tenantSlug, clientSecret, token)
    return { tag: 'registered', registration }
  } catch (error) {
    if (error instanceof TokenSpent) return denied('the initial access token is used up')
    throw error
  }
}

export function registrationOf(
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

/** The audit event of a client that writes its registration. */
export function auditOf(
  { clock, random }: Pick<RegistrationNeeds, 'clock' | 'random'>,
  type: AuditOnlyType,
  {
    tenantId,
    clientId,
    address,
    tokenId,
  }: { tenantId: string; clientId: string; address: string; tokenId: string | null },
  { requestId }: MessageContext,
) {
  return {
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
    requestId: requestId ?? null,
    ip: address,
    data: tokenId === null ? {} : { registration_token_id: tokenId },
  }
}
