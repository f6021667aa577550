import java.io.File;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import org.openapitools.client.ApiClient;
import org.openapitools.client.api.AttestationApi;
import org.openapitools.client.model.ArtifactInput;
import org.openapitools.client.model.CreateAttestationRequest;
import org.openapitools.client.model.CreateAttestationRequestMetadata;
import org.openapitools.client.model.ListAttestationsReply;
import org.openapitools.client.model.Submission;

public class Main {
  public static void main(String[] args) throws Exception {
    String key = System.getenv("ATTEST_API_KEY");
    ApiClient client = new ApiClient();
    client.setBasePath(System.getenv("ATTEST_URL"));
    client.setBearerToken(key);
    AttestationApi attestations = new AttestationApi(client);
    ListAttestationsReply page = attestations.listAttestations(null, null, null, null, null, null, null, null);
    CreateAttestationRequestMetadata metadata =
        new CreateAttestationRequestMetadata().schema("purl");
    metadata.putAdditionalProperty("purl", "pkg:maven/com.example/a@1.0.0");
    CreateAttestationRequest request =
        new CreateAttestationRequest().artifact(new ArtifactInput().sha256(args[0])).metadata(metadata);
    Submission made = attestations.createAttestation(request, args[0]);
    File receipt = attestations.downloadBundleCose(args[1], null, null);
    System.out.println("listed " + page.getData().get(0).getId());
    System.out.println("created " + made.getId());
    Files.copy(receipt.toPath(), Paths.get("bundle.cose"), StandardCopyOption.REPLACE_EXISTING);
  }
}
