/** MCP servers whose tools agents call through the gateway. */
import { mcpServer, type McpServerMembers } from '../../../actors/domain/entities/mcp-server.js'
import { mcpServers, type ServerRefused } from '../../../actors/vault/vault/mcp-servers/protocol.js'
import { entityRoutes } from '../../entity-routes.js'
import type { Route } from '../../route.js'
import { grantRefusals } from './vault-shapes.js'

const SERVERS = '/api/v1/mcp-servers'
const managers = { scheme: 'bearer', scopes: ['vault:manage'] } as const

export const mcpServerRoutes: readonly Route[] = entityRoutes<McpServerMembers, ServerRefused>(
  mcpServers,
  {
    entity: mcpServer,
    path: SERVERS,
    noun: { a: 'an', one: 'MCP server', many: 'MCP servers' },
    operationIds: {
      list: 'listMcpServers',
      create: 'createMcpServer',
      read: 'getMcpServer',
      update: 'updateMcpServer',
      remove: 'deleteMcpServer',
    },
    texts: {
      create: {
        summary: 'Register an MCP server whose tools agents call',
        description:
          'Only who may grant the credential can set it. Its allowed_hosts must have the host of the URL.',
      },
      update: {
        description:
          'Absent members stay unchanged. A new URL or credential needs the rights of a creation.',
      },
      remove: { description: 'Its grants end.' },
      conflict: 'Another MCP server of the tenant has this slug.',
    },
    capabilities: ['vault.mcp_servers'],
    readers: managers,
    managers,
    refusals: grantRefusals,
  },
)
