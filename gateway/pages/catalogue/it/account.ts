/** Italian texts of the account page and of enrolment. */
import type { Text } from '../../../../actors/domain/i18n/languages.js'
import type { account as english } from '../en/account.js'

export const account: Readonly<Record<keyof typeof english, Text>> = {
  'profile.title': 'Profilo',
  'profile.none': 'Non ha ancora aggiunto informazioni su di Lei.',
  'profile.change': 'Modifica profilo',
  'profile.lead':
    'Le app vedono queste informazioni solo se Lei lo consente. Lasci vuoto un campo per rimuoverlo.',
  'profile.tenant': 'Stabilito da {tenant}.',
  'profile.save': 'Salva',
  'profile.name': 'Nome completo',
  'profile.name.invalid':
    'Questo nome non è valido: usi al massimo 120 caratteri e nessun carattere di controllo.',
  'profile.given_name': 'Nome',
  'profile.given_name.invalid':
    'Questo nome non è valido: usi al massimo 120 caratteri e nessun carattere di controllo.',
  'profile.family_name': 'Cognome',
  'profile.family_name.invalid':
    'Questo cognome non è valido: usi al massimo 120 caratteri e nessun carattere di controllo.',
  'profile.picture': 'Immagine',
  'profile.picture.hint':
    'L’indirizzo di una Sua immagine, per esempio https://example.com/io.png.',
  'profile.picture.invalid':
    'L’indirizzo dell’immagine deve iniziare con https:// e avere al massimo 2048 caratteri.',
  'profile.locale': 'Lingua',
  'profile.locale.hint': 'Un codice di lingua, per esempio it o en-GB.',
  'profile.locale.invalid': 'Questo non è un codice di lingua. Esempi: it, en-GB.',
  'profile.zoneinfo': 'Fuso orario',
  'profile.zoneinfo.hint': 'Per esempio Europe/Rome.',
  'profile.zoneinfo.invalid': 'Questo fuso orario non è noto. Esempio: Europe/Rome.',
  'profile.phone_number': 'Numero di telefono',
  'profile.phone_number.hint': 'Con il prefisso internazionale, per esempio +39 06 1234 5678.',
  'profile.phone_number.invalid':
    'Questo numero di telefono non è valido. Inizia con + e il prefisso internazionale, per esempio +39 06 1234 5678.',
  'account.password': 'Password',
  'account.password.none': 'Non ha una password. Accede in un altro modo.',
  'account.confined':
    'Ha effettuato l’accesso tramite un provider di {tenant}, quindi la Sua password, le passkey e i secondi fattori non sono mostrati. Acceda con uno di essi per vederli.',
  'account.confined.leave': 'Accedi con le Sue chiavi',
  'account.password.choose':
    'Non ha una password. Per impostarne una, si disconnetta e scelga «Password dimenticata?» nella pagina di accesso.',
  'account.password.change': 'Cambia password',
  'account.email.confirm': 'Invia email di conferma',
  'enroll.title': 'Configuri la verifica in due passaggi',
  'enroll.lead': 'Un secondo passaggio protegge il Suo account se qualcuno scopre il primo.',
  'enroll.scan': 'Scansioni questo codice QR con la Sua app di autenticazione.',
  'enroll.picture': 'Codice QR con il segreto per la Sua app di autenticazione',
  'enroll.manual': 'Oppure inserisca questa chiave nell’app:',
  'enroll.open': 'Apri in un’app di autenticazione su questo dispositivo',
  'enroll.submit': 'Attiva',
  'enroll.wrong':
    'Codice errato. Controlli l’ora del Suo dispositivo e provi il codice successivo.',
  'codes.title': 'Salvi i Suoi codici di recupero',
  'codes.lead':
    'Se perde il dispositivo, ogni codice Le consente di accedere una volta. Li mostriamo solo ora. Li conservi in un gestore di password o li stampi.',
  'codes.continue': 'Ho salvato i miei codici',
  'account.title': 'Il Suo account',
  'account.gone': 'Questo elemento è terminato, è scaduto o è già stato gestito.',
  'account.sessions': 'Sessioni',
  'account.session.this': 'Questo browser',
  'account.session.other': 'Un altro browser',
  'account.session.since': 'Accesso {time}',
  'account.session.seen': 'Ultima attività {time}',
  'account.session.end': 'Disconnetti',
  'account.session.others': 'Disconnetti da tutti gli altri dispositivi',
  'account.session.address': 'Indirizzo {address}',
  'account.factors': 'Verifica in due passaggi',
  'account.factor.totp': 'App di autenticazione',
  'account.factor.enrolled': 'Aggiunta {time}',
  'account.factor.used': 'Ultimo utilizzo {time}',
  'account.factor.remove': 'Rimuovi',
  'account.factor.none':
    'Aggiunga un secondo passaggio che protegga il Suo account se qualcuno scopre la password.',
  'account.factor.add': 'Configura la verifica in due passaggi',
  'account.factor.passkey':
    'Le Sue passkey sono il Suo secondo passaggio. Un’app è utile quando non ha una passkey a portata di mano.',
  'account.factor.app': 'Aggiungi un’app di autenticazione',
  'account.factor.renew': 'Nuovi codici di recupero',
  'account.factor.codes': {
    one: '{count} codice di recupero rimasto',
    other: '{count} codici di recupero rimasti',
  },
  'account.identities': 'Account collegati',
  'account.identity.none': 'Nessun account di un altro provider è collegato.',
  'account.identity.linked': 'Collegato {time}',
  'account.identity.used': 'Ultimo utilizzo {time}',
  'account.identity.unlink': 'Scollega',
  'account.identity.link': 'Collega {name}',
  'account.consents': 'App collegate',
  'account.consent.none': 'Nessuna app ha accesso al Suo account.',
  'account.consent.since': 'Accesso concesso {time}',
  'account.consent.withdraw': 'Revoca accesso',
  'account.delegations': 'Agenti',
  'account.delegation.none': 'Nessun agente agisce per Lei.',
  'account.delegation.since': 'Accesso concesso {time}',
  'account.delegation.used': 'Ultimo utilizzo {time}',
  'account.delegation.unused': 'Non ancora utilizzato',
  'account.delegation.until': 'Scade {time}',
  'account.delegation.revoke': 'Revoca accesso',
  'account.next': 'Passaggi successivi',
  'account.next.lead':
    'Lei gestisce {tenant}. La pagina iniziale rimanda alla documentazione dell’API e a tutto ciò che serve ai programmi.',
  'account.next.link': 'Apri la pagina iniziale',
  'account.signout': 'Disconnetti',
  'enroll.app': 'App di autenticazione',
  'passkey.sign-in': 'Accedi con una passkey',
  'passkey.wrong':
    'Questa passkey non ha un account qui. Ne provi un’altra o acceda con la password.',
  'passkey.use': 'Usa una passkey',
  'passkey.create': 'Crea passkey',
  'passkey.enroll': 'Passkey',
  'passkey.enroll.lead':
    'Usi l’impronta digitale, il volto, il blocco del dispositivo o una chiave di sicurezza. È rapido e La protegge dai siti falsi.',
  'passkey.enroll.device':
    'Questa operazione richiede una passkey che resti su un solo dispositivo, come una chiave di sicurezza.',
  'passkey.copyable':
    'Quella passkey può essere copiata su altri dispositivi. Usi una chiave di sicurezza o una passkey che resti su questo dispositivo.',
  'passkey.refused': 'Non siamo riusciti ad aggiungere la passkey. Riprovi.',
  'passkey.device':
    'Questa operazione richiede una passkey che resti su un solo dispositivo, come una chiave di sicurezza.',
  'passkey.name': 'Nome della passkey',
  'passkey.name.hint': 'Aiuta a distinguere le Sue passkey.',
  'passkey.cancelled': 'Annullato. Riprovi quando vuole.',
  'passkey.known': 'Questo dispositivo ha già una passkey per il Suo account.',
  'passkey.failed': 'Si è verificato un errore. Ricarichi la pagina e riprovi.',
  'passkey.missing': 'Le passkey richiedono un browser recente con JavaScript.',
  'passkey.new.title': 'Aggiunga una passkey',
  'passkey.new.lead':
    'Acceda con l’impronta digitale, il volto, il blocco del dispositivo o una chiave di sicurezza al posto della password.',
  'passkey.new.back': 'Torna al Suo account',
  'totp.new.title': 'Aggiunga un’app di autenticazione',
  'totp.new.lead':
    'I suoi codici sono un secondo passaggio quando non ha una passkey a portata di mano.',
  'account.passkeys': 'Passkey',
  'account.passkey.none':
    'Acceda senza password: con l’impronta digitale, il volto o una chiave di sicurezza.',
  'account.passkey.add': 'Aggiungi passkey',
  'account.passkey.device': 'Resta su un solo dispositivo',
  'account.passkey.synced': 'Salvata da un gestore di password',
  'account.passkey.copyable': 'Può essere salvata altrove',
  'account.passkey.rename': 'Rinomina',
  'account.passkey.name': 'Nome',
  'account.passkey.save': 'Salva',
  'account.requests':
    'Le applicazioni possono chiederLe di approvare un accesso altrove, per esempio presso un call center.',
  'account.requests.open': 'Vedi le richieste',
}
