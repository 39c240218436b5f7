/** SSH certificates. */
import { z } from 'zod'
import { sshCertificates, TRUST_FILES } from '../../../actors/vault/ssh-certificates/protocol.js'
import type { CertificateName } from '../../../actors/domain/vault/certificate-name.js'
import { strongTag } from '../../response/shared-body.js'
import { scopeChallenge } from '../../request/authenticate.js'
import { callerOf } from '../../request/caller.js'
import { idText } from '../../request/ids.js'
import { bytes, json, problem, type Route, reply, route } from '../../route.js'
import { invalidMember } from '../operations/invalid-member.js'

const CREDENTIALS = '/api/v1/vault/credentials'
const CredentialPath = z.object({ credential_id: z.string().max(64) })
const time = z.iso.datetime()
const serial = z
  .string()
  .regex(/^[0-9]{1,20}$/)
  .meta({ description: 'Unsigned 64 bits, decimal.', example: '12974638201758493021' })

const SshSign = z
  .object({
    credential_id: idText().meta({ description: 'An ssh_ca credential.' }),
    target_host: z.string().min(1).max(255).meta({ example: 'db1.internal.example' }),
    principals: z
      .array(z.string().regex(/^[A-Za-z0-9._@-]{1,64}$/))
      .min(1)
      .max(16)
      .meta({ description: 'User names on the host.', example: ['deploy'] }),
    validity_seconds: z.int().min(1).max(3_600).optional(),
    public_key: z
      .string()
      .min(1)
      .max(1_024)
      .optional()
      .meta({
        description:
          'The OpenSSH public key to certify, ssh-ed25519 or ecdsa-sha2-nistp256. If omitted, a key pair ' +
          'is generated. Ed25519 points of small order, off the curve or not canonical are refused.',
      }),
    source_addresses: z.array(z.string().max(64)).max(32).optional(),
    force_command: z.string().min(1).max(1_024).optional(),
  })
  .meta({ id: 'SshSignRequest' })

const SshCertificate = z
  .object({
    certificate: z.string(),
    private_key: z
      .string()
      .nullable()
      .meta({ description: 'Shown once; null if public_key was sent.' }),
    public_key: z.string(),
    key_id: z.string(),
    serial,
    principals: z.array(z.string()),
    target_host: z.string(),
    valid_after: time,
    valid_before: time,
    ca_public_key: z.string().meta({ description: 'The line for TrustedUserCAKeys.' }),
  })
  .meta({ id: 'SshCertificate' })

const RevokeCertificate = z
  .union([
    z.strictObject({ serial }),
    z.strictObject({ key_id: z.string().min(1).max(256) }),
    z.strictObject({
      public_key: z.string().min(1).max(1_024).meta({
        description: 'An OpenSSH public key. No certificate of the authority may have it again.',
      }),
    }),
    z.strictObject({ principal: z.string().regex(/^[A-Za-z0-9._@-]{1,64}$/) }),
    z.strictObject({ delegation_id: idText() }),
  ])
  .meta({ id: 'RevokeSshCertificate' })
const RevokedCertificate = z
  .object({
    serial: serial.optional(),
    serials: z.array(serial).meta({ description: 'All that the request revokes.' }),
    revoked_at: time,
  })
  .meta({ id: 'RevokedSshCertificate' })

/** A poll every 30 s still sees a revocation within 60 s. */
const HOST_FILE_MAX_AGE_SECS = 5
const forHosts = {
  method: 'GET',
  tags: ['Vault'],
  exposure: 'public',
  security: { scheme: 'anonymous' },
  cors: 'public',
  capabilities: ['vault.ssh_ca'],
} as const
const busy = problem(503, 'service-unavailable', {
  detail: 'Too many hosts poll. Poll again later.',
  error: 'share_exhausted',
  retryAfterSecs: 5,
})
const hostFile = (contentType: string) =>
  bytes<{ body: Uint8Array }>(200, contentType, ({ body }) => ({
    body,
    etag: strongTag(body),
    maxAgeSecs: HOST_FILE_MAX_AGE_SECS,
  }))

const unknown = problem(404, 'not-found', { detail: 'There is no such SSH certificate authority.' })

export const sshCertificatesRoutes: readonly Route[] = [
  route(sshCertificates, 'signSshCertificate', {
    method: 'POST',
    path: '/api/v1/agents/delegations/ssh-sign',
    summary: 'Get a short-lived SSH certificate',
    description:
      'Needs a direct agent token. The private key is not stored: only this response has it.',
    tags: ['Vault'],
    exposure: 'public',
    security: {
      scheme: 'bearer',
      scopes: ['vault:sign', 'vault:read'],
      subjects: ['agent'],
      direct: 'required',
    },
    capabilities: ['vault.ssh_ca'],
    onceOnly: true,
    body: json(SshSign),
    message: (request) => ({
      caller: callerOf(request),
      credentialId: request.body.credential_id,
      targetHost: request.body.target_host,
      principals: request.body.principals,
      validitySecs: request.body.validity_seconds ?? null,
      publicKey: request.body.public_key ?? null,
      sourceAddresses: request.body.source_addresses ?? [],
      forceCommand: request.body.force_command ?? null,
    }),
    replies: {
      signed: reply(200, SshCertificate, (signed) => ({
        certificate: signed.certificate,
        private_key: signed.privateKey,
        public_key: signed.publicKey,
        key_id: signed.keyId,
        serial: signed.serial,
        principals: [...signed.principals],
        target_host: signed.targetHost,
        valid_after: signed.validAfter.toISOString(),
        valid_before: signed.validBefore.toISOString(),
        ca_public_key: signed.caPublicKey,
      })),
      invalid: invalidMember,
      denied: problem(403, 'policy-denied', ({ detail }) => ({ detail })),
      unknown,
    },
  }),
  route(sshCertificates, 'revokeSshCertificate', {
    method: 'POST',
    path: `${CREDENTIALS}/{credential_id}/revoke-certificate`,
    summary: 'Revoke SSH certificates',
    description:
      'By exactly one name: serial, key_id, public_key, principal or delegation_id. ' +
      "Needs vault:manage, or the token of the authority's owner if that is an agent.",
    tags: ['Vault'],
    exposure: 'internal',
    security: { scheme: 'bearer', direct: 'required' },
    params: CredentialPath,
    body: json(RevokeCertificate),
    message: (request) => {
      const [[by, value]] = Object.entries(request.body) as [[CertificateName, string]]
      return { caller: callerOf(request), credentialId: request.params.credential_id, by, value }
    },
    replies: {
      certificate_revoked: reply(200, RevokedCertificate, ({ serial, serials, revokedAt }) => ({
        ...(serial === null ? {} : { serial }),
        serials: [...serials],
        revoked_at: revokedAt.toISOString(),
      })),
      invalid: invalidMember,
      not_owner: problem(403, 'insufficient-scope', (_outcome, { baseUrl }) => ({
        detail:
          "This needs vault:manage, or the token of the authority's owner if that is an agent.",
        headers: scopeChallenge(baseUrl, ['vault:manage']),
      })),
      unknown: problem(404, 'not-found', {
        detail: 'There is no such certificate, or it has expired.',
      }),
    },
  }),
  route(sshCertificates, 'getSshRevocationList', {
    method: 'GET',
    path: `${CREDENTIALS}/{credential_id}/krl`,
    summary: 'Read the revocation list of an SSH certificate authority',
    description:
      'An OpenSSH KRL for RevokedKeys of sshd. For a revoked authority it revokes all certificates. Hosts ' +
      'poll the same list without a token at /ssh/{credential_id}/krl.',
    tags: ['Vault'],
    exposure: 'internal',
    security: { scheme: 'bearer', scopes: ['vault:list', 'vault:read', 'vault:manage'] },
    params: CredentialPath,
    message: ({ params, principal }) => ({
      tenantId: principal.tenantId,
      credentialId: params.credential_id,
    }),
    replies: {
      list: bytes(200, 'application/octet-stream', ({ krl }) => ({
        body: krl,
        etag: strongTag(krl),
      })),
      unknown,
    },
  }),
  route(sshCertificates, 'pollSshRevocationList', {
    ...forHosts,
    path: '/ssh/{credential_id}/krl',
    summary: 'Poll the revocation list of an SSH certificate authority',
    description:
      'An OpenSSH KRL for RevokedKeys of sshd, with a version that grows with each change. Send If-None-Match. ' +
      'krl.sig signs it.',
    params: CredentialPath,
    message: ({ params }) => ({ credentialId: params.credential_id }),
    replies: { file: hostFile('application/octet-stream'), unknown, busy },
  }),
  route(sshCertificates, 'getSshTrustFile', {
    ...forHosts,
    path: '/ssh/{credential_id}/{file}',
    summary: 'Get what a host needs to trust an SSH certificate authority',
    description:
      'ca.pub has the lines for TrustedUserCAKeys: the present key, and former ones while their certificates ' +
      'are valid. krl.sig and ca.pub.sig are SSH signatures for ssh-keygen -Y verify, with the identity svc and ' +
      'the namespaces svc-krl and svc-ca. allowed_signers has the key of these signatures, which never changes.',
    params: CredentialPath.extend({ file: z.enum(TRUST_FILES) }),
    message: ({ params }) => ({ credentialId: params.credential_id, file: params.file }),
    replies: { file: hostFile('text/plain; charset=utf-8'), unknown, busy },
  }),
]
