/** The secret of `aws_sigv4`: access keys, and optionally a role (docs/guides/vault/signing.md). */
import { z } from 'zod'
import { HttpsUrl } from '../../entities/https-url.js'

const text = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[!-~]+$/, 'Must be printable ASCII without spaces.')
const label = z
  .string()
  .max(63)
  .regex(/^[a-z0-9-]+$/, 'Must have lower-case letters, digits and hyphens.')

export const AwsSigV4Secret = z
  .strictObject({
    access_key_id: text(128).regex(/^[^/,]+$/, 'Must not contain / or ,'),
    secret_access_key: text(256),
    session_token: text(16_384).optional(),
    region: label.optional().meta({
      description: 'Default: as the caller signs, else as in the host.',
      example: 'eu-central-1',
    }),
    service: label
      .optional()
      .meta({ description: 'Default: as the caller signs, else as in the host.', example: 's3' }),
    role_arn: text(2048)
      .regex(/^arn:aws[a-z-]*:iam::\d{12}:role\/.+$/, 'Must be the ARN of a role.')
      .optional()
      .meta({ description: 'A role that the keys assume (sts:AssumeRole).' }),
    external_id: text(1224).optional().meta({ description: 'ExternalId of sts:AssumeRole.' }),
    sts_url: HttpsUrl({ max: 512 })
      .optional()
      .meta({ description: 'Default: the STS of the region, else the global one.' }),
  })
  .superRefine((secret, { addIssue }) => {
    if (secret.role_arn !== undefined) return
    for (const member of ['external_id', 'sts_url'] as const)
      if (secret[member] !== undefined)
        addIssue({ code: 'custom', path: [member], message: 'Must be omitted without role_arn.' })
  })
  .meta({ id: 'AwsSigV4Secret' })
export type AwsSigV4Secret = z.output<typeof AwsSigV4Secret>
