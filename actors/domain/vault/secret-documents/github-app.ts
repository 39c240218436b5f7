/** The secret of `github_app`: an installation of a GitHub App (docs/guides/vault/oauth-credentials.md). */
import { z } from 'zod'
import { HttpsUrl } from '../../entities/https-url.js'
import { RsaPem } from './private-keys.js'

export const GitHubAppSecret = z
  .strictObject({
    app_id: z
      .union([z.string().regex(/^[A-Za-z0-9._-]{1,64}$/), z.int().min(1)])
      .meta({ description: 'The id or the client id of the app.' }),
    installation_id: z.union([z.string().regex(/^[0-9]{1,20}$/), z.int().min(1)]),
    private_key: RsaPem,
    api_url: HttpsUrl({}).optional().meta({
      description: 'Default: https://api.github.com. Its host is one of the allowed_hosts.',
    }),
    repositories: z
      .array(z.string().min(1).max(100))
      .min(1)
      .max(500)
      .optional()
      .meta({ description: 'Names of the repositories for which tokens are good.' }),
    permissions: z
      .record(z.string().min(1).max(64), z.enum(['read', 'write', 'admin']))
      .optional()
      .meta({ description: 'What tokens may do, such as contents: read.' }),
  })
  .meta({ id: 'GitHubAppSecret' })

export type GitHubAppDocument = z.output<typeof GitHubAppSecret>
