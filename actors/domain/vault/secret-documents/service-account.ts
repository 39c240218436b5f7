/** The secret of `gcp_service_account`: the key file of Google (docs/guides/vault/oauth-credentials.md). */
import { z } from 'zod'
import { HttpsUrl } from '../../entities/https-url.js'
import { RsaPem } from './private-keys.js'

/** The file has more members, which are not used. */
export const ServiceAccountSecret = z
  .looseObject({
    type: z.literal('service_account').optional(),
    client_email: z.string().min(3).max(320),
    private_key: RsaPem,
    private_key_id: z.string().min(1).max(128).optional(),
    token_uri: HttpsUrl({ query: true }).optional().meta({
      description:
        'Default: https://oauth2.googleapis.com/token. Its host is one of the allowed_hosts.',
    }),
    scope: z
      .string()
      .min(1)
      .max(4096)
      .optional()
      .meta({ description: 'Default: https://www.googleapis.com/auth/cloud-platform.' }),
  })
  .meta({ id: 'GcpServiceAccountSecret' })

export type ServiceAccountDocument = z.output<typeof ServiceAccountSecret>
