/** French texts of the account page and of enrolment. */
import type { Text } from '../../../../actors/domain/i18n/languages.js'
import type { account as english } from '../en/account.js'

export const account: Readonly<Record<keyof typeof english, Text>> = {
  'profile.title': 'Profil',
  'profile.none': 'Vous n’avez encore rien indiqué sur vous.',
  'profile.change': 'Modifier le profil',
  'profile.lead':
    'Les applications ne voient ces informations que si vous l’autorisez. Laissez un champ vide pour le supprimer.',
  'profile.tenant': 'Défini par {tenant}.',
  'profile.save': 'Enregistrer',
  'profile.name': 'Nom',
  'profile.name.invalid':
    'Ce nom n’est pas valide : 120 caractères au plus, sans caractères de contrôle.',
  'profile.given_name': 'Prénom',
  'profile.given_name.invalid':
    'Ce prénom n’est pas valide : 120 caractères au plus, sans caractères de contrôle.',
  'profile.family_name': 'Nom de famille',
  'profile.family_name.invalid':
    'Ce nom de famille n’est pas valide : 120 caractères au plus, sans caractères de contrôle.',
  'profile.picture': 'Photo',
  'profile.picture.hint': 'L’adresse d’une photo de vous, par exemple https://example.com/moi.png.',
  'profile.picture.invalid':
    'L’adresse de la photo doit commencer par https:// et comporter 2048 caractères au plus.',
  'profile.locale': 'Langue',
  'profile.locale.hint': 'Un code de langue, par exemple fr ou en-GB.',
  'profile.locale.invalid': 'Ce n’est pas un code de langue. Exemples : fr, en-GB.',
  'profile.zoneinfo': 'Fuseau horaire',
  'profile.zoneinfo.hint': 'Par exemple Europe/Paris.',
  'profile.zoneinfo.invalid': 'Ce fuseau horaire est inconnu. Exemple : Europe/Paris.',
  'profile.phone_number': 'Numéro de téléphone',
  'profile.phone_number.hint': 'Avec l’indicatif du pays, par exemple +33 1 23 45 67 89.',
  'profile.phone_number.invalid':
    'Ce numéro de téléphone n’est pas valide. Il commence par + et l’indicatif du pays, par exemple +33 1 23 45 67 89.',
  'account.password': 'Mot de passe',
  'account.password.none':
    'Vous n’avez pas de mot de passe. Vous vous connectez d’une autre manière.',
  'account.confined':
    'Vous vous êtes connecté par un fournisseur de {tenant} : votre mot de passe, vos clés d’accès et vos seconds facteurs ne sont donc pas affichés. Connectez-vous avec l’un d’eux pour les voir.',
  'account.confined.leave': 'Se connecter avec vos propres clés',
  'account.password.choose':
    'Vous n’avez pas de mot de passe. Pour en définir un, déconnectez-vous et choisissez « Mot de passe oublié ? » sur la page de connexion.',
  'account.password.change': 'Modifier le mot de passe',
  'account.email.confirm': 'Envoyer l’e-mail de confirmation',
  'enroll.title': 'Configurer la validation en deux étapes',
  'enroll.lead': 'Une seconde étape protège votre compte si quelqu’un découvre la première.',
  'enroll.scan': 'Scannez ce code QR avec votre application d’authentification.',
  'enroll.picture': 'Code QR contenant le secret pour votre application d’authentification',
  'enroll.manual': 'Ou saisissez cette clé dans l’application :',
  'enroll.open': 'Ouvrir dans une application d’authentification sur cet appareil',
  'enroll.submit': 'Activer',
  'enroll.wrong': 'Code incorrect. Vérifiez l’heure de votre appareil et essayez le code suivant.',
  'codes.title': 'Conservez vos codes de récupération',
  'codes.lead':
    'Si vous perdez votre appareil, chaque code vous permet de vous connecter une fois. Nous ne les affichons que maintenant. Conservez-les dans un gestionnaire de mots de passe ou imprimez-les.',
  'codes.continue': 'J’ai enregistré mes codes',
  'account.title': 'Votre compte',
  'account.gone': 'Cet élément a pris fin, a expiré ou a déjà été traité.',
  'account.sessions': 'Sessions',
  'account.session.this': 'Ce navigateur',
  'account.session.other': 'Un autre navigateur',
  'account.session.since': 'Connexion {time}',
  'account.session.seen': 'Dernière activité {time}',
  'account.session.end': 'Se déconnecter',
  'account.session.others': 'Se déconnecter partout ailleurs',
  'account.session.address': 'Adresse {address}',
  'account.factors': 'Validation en deux étapes',
  'account.factor.totp': 'Application d’authentification',
  'account.factor.enrolled': 'Ajoutée {time}',
  'account.factor.used': 'Dernière utilisation {time}',
  'account.factor.remove': 'Supprimer',
  'account.factor.none':
    'Ajoutez une seconde étape qui protège votre compte si quelqu’un apprend votre mot de passe.',
  'account.factor.add': 'Configurer la validation en deux étapes',
  'account.factor.passkey':
    'Vos clés d’accès sont votre seconde étape. Une application est utile si vous n’avez pas de clé d’accès à portée de main.',
  'account.factor.app': 'Ajouter une application d’authentification',
  'account.factor.renew': 'Nouveaux codes de récupération',
  'account.factor.codes': {
    one: '{count} code de récupération restant',
    other: '{count} codes de récupération restants',
  },
  'account.identities': 'Comptes associés',
  'account.identity.none': 'Aucun compte d’un autre fournisseur n’est associé.',
  'account.identity.linked': 'Associé {time}',
  'account.identity.used': 'Dernière utilisation {time}',
  'account.identity.unlink': 'Dissocier',
  'account.identity.link': 'Associer {name}',
  'account.consents': 'Applications connectées',
  'account.consent.none': 'Aucune application n’a accès à votre compte.',
  'account.consent.since': 'Accès accordé {time}',
  'account.consent.withdraw': 'Révoquer l’accès',
  'account.delegations': 'Agents',
  'account.delegation.none': 'Aucun agent n’agit pour vous.',
  'account.delegation.since': 'Accès accordé {time}',
  'account.delegation.used': 'Dernière utilisation {time}',
  'account.delegation.unused': 'Pas encore utilisé',
  'account.delegation.until': 'Expire {time}',
  'account.delegation.revoke': 'Révoquer l’accès',
  'account.next': 'Étapes suivantes',
  'account.next.lead':
    'Vous gérez {tenant}. La page d’accueil mène à la documentation de l’API et à tout ce dont les programmes ont besoin.',
  'account.next.link': 'Ouvrir la page d’accueil',
  'account.signout': 'Se déconnecter',
  'enroll.app': 'Application d’authentification',
  'passkey.sign-in': 'Se connecter avec une clé d’accès',
  'passkey.wrong':
    'Cette clé d’accès n’a pas de compte ici. Essayez-en une autre ou connectez-vous avec votre mot de passe.',
  'passkey.use': 'Utiliser une clé d’accès',
  'passkey.create': 'Créer une clé d’accès',
  'passkey.enroll': 'Clé d’accès',
  'passkey.enroll.lead':
    'Utilisez votre empreinte digitale, votre visage, le verrouillage de votre appareil ou une clé de sécurité. C’est rapide et cela vous protège des faux sites.',
  'passkey.enroll.device':
    'Cette action nécessite une clé d’accès qui reste sur un seul appareil, par exemple une clé de sécurité.',
  'passkey.copyable':
    'Cette clé d’accès peut être copiée sur d’autres appareils. Utilisez une clé de sécurité ou une clé d’accès qui reste sur cet appareil.',
  'passkey.refused': 'Nous n’avons pas pu ajouter la clé d’accès. Réessayez.',
  'passkey.device':
    'Cette action nécessite une clé d’accès qui reste sur un seul appareil, par exemple une clé de sécurité.',
  'passkey.name': 'Nom de la clé d’accès',
  'passkey.name.hint': 'Il vous aide à distinguer vos clés d’accès.',
  'passkey.cancelled': 'Annulé. Réessayez quand vous êtes prêt.',
  'passkey.known': 'Cet appareil possède déjà une clé d’accès pour votre compte.',
  'passkey.failed': 'Une erreur s’est produite. Actualisez la page et réessayez.',
  'passkey.missing': 'Les clés d’accès nécessitent un navigateur récent avec JavaScript.',
  'passkey.new.title': 'Ajouter une clé d’accès',
  'passkey.new.lead':
    'Connectez-vous avec votre empreinte digitale, votre visage, le verrouillage de votre appareil ou une clé de sécurité, sans votre mot de passe.',
  'passkey.new.back': 'Retour à votre compte',
  'totp.new.title': 'Ajouter une application d’authentification',
  'totp.new.lead':
    'Ses codes servent de seconde étape lorsque vous n’avez pas de clé d’accès à portée de main.',
  'account.passkeys': 'Clés d’accès',
  'account.passkey.none':
    'Connectez-vous sans mot de passe : avec votre empreinte digitale, votre visage ou une clé de sécurité.',
  'account.passkey.add': 'Ajouter une clé d’accès',
  'account.passkey.device': 'Reste sur un seul appareil',
  'account.passkey.synced': 'Sauvegardée par un gestionnaire de mots de passe',
  'account.passkey.copyable': 'Peut être sauvegardée',
  'account.passkey.rename': 'Renommer',
  'account.passkey.name': 'Nom',
  'account.passkey.save': 'Enregistrer',
  'account.requests':
    'Les applications peuvent vous demander d’approuver une connexion effectuée ailleurs, par exemple dans un centre d’appels.',
  'account.requests.open': 'Voir les demandes',
}
