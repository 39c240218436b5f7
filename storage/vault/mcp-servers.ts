/** MCP servers of a tenant. */
import { mcpServer } from '../../actors/domain/entities/mcp-server.js'
import { entityTable } from '../platform/portable/entity-table.js'

// `listMcpServers`, `createMcpServer`, `getMcpServer`, `updateMcpServer`, `deleteMcpServer`.
export const mcpServerTable = entityTable(mcpServer)

/** True if a write failed because the tenant has a server with the slug. */
export const isMcpSlugTaken = (error: unknown): boolean =>
  (error as { readonly constraint?: unknown } | null)?.constraint === 'mcp_servers_slug'
