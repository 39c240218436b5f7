/** Settings of the kms client: [kms]. */
import { path, readFilePath } from '../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../runtime/kernel/config/section.js'

export const kmsSettings = section(
  'kms',
  {
    socket_path: path('/run/svc/kms.sock').describe('Unix socket of the kms process.'),
    server_public_key_path: readFilePath('/etc/svc/kms-server.public').describe(
      'Public key of the kms.',
    ),
    client_private_key_path: readFilePath('/etc/svc/kms-client.private').describe(
      'Private key of the service (mode 0600).',
    ),
  },
  {
    presence: 'when_set',
    about:
      'Key management. Set all three keys or none. Without them, outside of production, a local kms keeps its keys in ' +
      'the data directory. `svc kms keygen --dir D` writes the key files.',
  },
)

export type KmsSettings = SettingsOf<typeof kmsSettings>
