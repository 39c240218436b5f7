/** An MCP server whose tools agents call through the gateway (docs/guides/vault/mcp-gateway.md). */
import { z } from 'zod'
import { type Draft, entity, type Row } from './entity.js'
import { HttpsUrl } from './https-url.js'
import { ChosenName } from './names.js'

export const MCP_SLUG = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

export const mcpServer = entity({
  name: 'mcp_server',
  table: 'mcp_servers',
  schema: 'McpServer',
  omitted: ['credential_id'],
  members: {
    slug: z.string().regex(MCP_SLUG).meta({
      description: 'Unique in the tenant: lower-case letters, digits and hyphens.',
      example: 'issues',
    }),
    name: ChosenName,
    url: HttpsUrl({ query: true }).meta({
      description: 'The streamable HTTP endpoint of the server.',
      example: 'https://mcp.example.com/mcp',
    }),
    credential_id: z.uuid().nullable().default(null).meta({
      description:
        'The credential with which the server is called. Its allowed_hosts have the host of the URL. Absent: none.',
    }),
    allow_private: z.boolean().default(false).meta({
      description:
        'Whether the server may have an address that is not public. It counts only where the deployment allows such addresses.',
    }),
  },
})

export type McpServerMembers = (typeof mcpServer)['members']
export type McpServer = Row<McpServerMembers>
export type McpServerDraft = Draft<McpServerMembers>
