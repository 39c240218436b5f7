/** Credential offers and issued credentials, as a tenant manages them (OpenID4VCI). */
import { z } from 'zod'
import { CREDENTIAL_CONFIGURATIONS } from '../../../actors/domain/credentials/catalogue.js'
import {
  credentialIssuance,
  type IssuedRecord,
  type OfferRecord,
  type OfferSecrets,
} from '../../../actors/oauth/credential-issuance/protocol.js'
import { callerOf } from '../../request/caller.js'
import { presenter } from '../../response/presenter.js'
import { idText } from '../../request/ids.js'
import { PageQuery, pageReply, readPage } from '../../request/paging.js'
import { empty, json, problem, type Route, reply, route } from '../../route.js'
import { idempotencyRefusals } from '../operations/idempotency-refusals.js'

const OFFERS = '/api/v1/credential-offers'
const ISSUED = '/api/v1/issued-credentials'
const facts = {
  tags: ['Verifiable credentials'],
  exposure: 'public',
  security: { scheme: 'bearer', scopes: ['credentials:issue'] },
} as const

const Grant = z.enum(['pre-authorized_code', 'authorization_code'])
const ConfigurationId = z.enum(CREDENTIAL_CONFIGURATIONS)

const CreateOffer = z
  .object({
    credential_configuration_id: ConfigurationId,
    user_id: idText().optional().meta({
      description:
        'The user that the credential is about. AgentDelegation takes the user of the delegation.',
    }),
    delegation_id: idText().optional().meta({ description: 'For AgentDelegation only.' }),
    grant: Grant.default('pre-authorized_code'),
    tx_code: z
      .boolean()
      .default(false)
      .meta({
        description:
          'The wallet also needs a code of six digits, which the response contains once. Send it to the ' +
          'person by another way than the offer. Five wrong codes end the offer.',
      }),
  })
  .meta({ id: 'CredentialOfferRequest' })

const Offer = z
  .object({
    id: z.uuid(),
    tenant_id: z.uuid(),
    credential_configuration_id: ConfigurationId,
    user_id: z.uuid(),
    delegation_id: z.uuid().nullable(),
    grant: Grant,
    status: z.enum(['offered', 'redeemed', 'issued', 'expired']),
    credential_offer_uri: z.url().optional().meta({
      description: 'Where the wallet reads the offer. It contains a secret and is returned once.',
    }),
    credential_offer: z
      .record(z.string(), z.unknown())
      .optional()
      .meta({ description: 'The offer itself (OpenID4VCI section 4.1.1). Returned once.' }),
    deep_link: z.string().optional().meta({
      description: 'Opens a wallet: show it as a link or QR code. Returned once.',
    }),
    page_url: z.url().optional().meta({
      description: 'A page that shows the offer as a QR code and link. Returned once.',
    }),
    tx_code: z.string().optional().meta({ description: 'Returned once.' }),
    created_at: z.iso.datetime(),
    expires_at: z.iso.datetime(),
  })
  .meta({ id: 'CredentialOffer' })

const Issued = z
  .object({
    id: z.uuid(),
    offer_id: z.uuid().nullable(),
    user_id: z.uuid(),
    delegation_id: z.uuid().nullable(),
    credential_configuration_id: ConfigurationId,
    status: z.enum(['valid', 'revoked']),
    status_list: z.object({ uri: z.url(), idx: z.int().min(0) }),
    issued_at: z.iso.datetime(),
    expires_at: z.iso.datetime(),
    revoked_at: z.iso.datetime().nullable(),
    revoked_reason: z.string().nullable().meta({
      description:
        'revoked, user_removed, user_suspended, role_lost, email_changed or delegation_ended.',
    }),
  })
  .meta({ id: 'IssuedCredential' })

const presentOffer = presenter(Offer)
const offerJson = (record: OfferRecord, secrets: OfferSecrets | null = null) =>
  presentOffer({
    ...record,
    credentialConfigurationId: record.configurationId,
    credentialOfferUri: secrets?.uri,
    credentialOffer: secrets?.offer,
    deepLink: secrets?.deepLink,
    pageUrl: secrets?.pageUrl,
    txCode: secrets?.txCode,
  })
const presentIssued = presenter(Issued)
const issuedJson = (record: IssuedRecord) =>
  presentIssued({ ...record, credentialConfigurationId: record.configurationId })

const OfferParams = z.object({ credential_offer_id: z.string().max(64) })
const IssuedParams = z.object({ issued_credential_id: z.string().max(64) })
const unknownOffer = problem(404, 'not-found', { detail: 'The credential offer does not exist.' })

export const credentialOfferRoutes: readonly Route[] = [
  route(credentialIssuance, 'createCredentialOffer', {
    ...facts,
    method: 'POST',
    path: OFFERS,
    summary: 'Offer a verifiable credential to a wallet',
    description:
      'OpenID4VCI. The tenant must issue credentials (credential_issuer_enabled). The offer and its code ' +
      'are valid for credentials.offer_ttl_secs (300 by default), and once.',
    onceOnly: true,
    idempotent: true,
    body: json(CreateOffer),
    message: (request) => ({
      caller: callerOf(request),
      configurationId: request.body.credential_configuration_id,
      userId: request.body.user_id ?? null,
      delegationId: request.body.delegation_id ?? null,
      grant: request.body.grant,
      txCode: request.body.tx_code,
      idempotency: request.idempotency,
    }),
    replies: {
      created: reply(
        201,
        Offer,
        ({ record, secrets }) => offerJson(record, secrets),
        ({ record }, { baseUrl }) => ({ location: `${baseUrl}${OFFERS}/${record.id}` }),
      ),
      issuance_off: problem(409, 'conflict', {
        detail: 'The tenant issues no credentials: turn on credential_issuer_enabled.',
      }),
      email_not_verified: problem(409, 'conflict', {
        detail: 'The user has no verified email address.',
      }),
      unknown_subject: problem(404, 'not-found', ({ detail }: { detail: string }) => ({ detail })),
      invalid: problem(
        400,
        'bad-request',
        ({ pointer, detail }: { pointer: string; detail: string }) => ({
          detail,
          errors: [{ pointer: `#${pointer}`, detail }],
        }),
      ),
      ...idempotencyRefusals,
    },
  }),
  route(credentialIssuance, 'listCredentialOffers', {
    ...facts,
    method: 'GET',
    path: OFFERS,
    summary: 'List the credential offers of the tenant, newest first',
    query: PageQuery,
    message: (request) => ({ caller: callerOf(request), ...readPage(request.query) }),
    replies: {
      listed: pageReply(Offer, ({ offers }) => offers.map((record) => offerJson(record))),
    },
  }),
  route(credentialIssuance, 'getCredentialOffer', {
    ...facts,
    method: 'GET',
    path: `${OFFERS}/{credential_offer_id}`,
    summary: 'Read a credential offer, without its secrets',
    params: OfferParams,
    message: (request) => ({
      caller: callerOf(request),
      offerId: request.params.credential_offer_id,
    }),
    replies: {
      found: reply(200, Offer, ({ record }) => offerJson(record)),
      unknown: unknownOffer,
    },
  }),
  route(credentialIssuance, 'deleteCredentialOffer', {
    ...facts,
    method: 'DELETE',
    path: `${OFFERS}/{credential_offer_id}`,
    summary: 'Withdraw a credential offer',
    description:
      'Its code and the tokens from it request nothing any more. Issued credentials stay valid: revoke them.',
    params: OfferParams,
    message: (request) => ({
      caller: callerOf(request),
      offerId: request.params.credential_offer_id,
    }),
    replies: { deleted: empty(204), unknown: unknownOffer },
  }),
  route(credentialIssuance, 'listIssuedCredentials', {
    ...facts,
    method: 'GET',
    path: ISSUED,
    summary: 'List the issued credentials of the tenant, newest first',
    description: 'The claims of a credential are not stored. The cursor is issued_at and id.',
    query: PageQuery,
    message: (request) => ({ caller: callerOf(request), ...readPage(request.query) }),
    replies: {
      listed: pageReply(Issued, ({ credentials }) => credentials.map(issuedJson)),
    },
  }),
  route(credentialIssuance, 'revokeIssuedCredential', {
    ...facts,
    method: 'POST',
    path: `${ISSUED}/{issued_credential_id}/revoke`,
    summary: 'Revoke an issued credential',
    description:
      'Its status becomes INVALID in the status list, and stays so. A repeated request changes nothing.',
    params: IssuedParams,
    message: (request) => ({
      caller: callerOf(request),
      credentialId: request.params.issued_credential_id,
    }),
    replies: {
      found: reply(200, Issued, ({ record }) => issuedJson(record)),
      unknown: problem(404, 'not-found', { detail: 'The credential does not exist.' }),
    },
  }),
]
